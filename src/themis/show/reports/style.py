"""How does a report look? One style for screens, phones and paper, in light and in dark.

Blue and orange are told apart by all eyes; shapes and words carry the same meaning. Every colour of
text keeps a contrast of 4.5 to what is behind it (tests/test_report_page.py computes it).
"""

from __future__ import annotations

LIGHT = {
    "ink": "#1c2430",
    "soft": "#55606e",
    "paper": "#ffffff",
    "sheet": "#f5f6f8",
    "line": "#d9dee5",
    "calm": "#1f5f99",
    "calm-sheet": "#e7f0f8",
    "grave": "#a8480c",
    "grave-sheet": "#fcefe4",
    "open": "#5c5470",
    "open-sheet": "#eeecf3",
    "mark": "#fbe3bf",
    "track": "#c9d0d9",
    "bar": "#7fa8cf",
    "grave-bar": "#e2a273",
}
DARK = {
    "ink": "#e4e8ee",
    "soft": "#a3adba",
    "paper": "#14181e",
    "sheet": "#1c222a",
    "line": "#333c47",
    "calm": "#7db8ec",
    "calm-sheet": "#172a3b",
    "grave": "#f0a46a",
    "grave-sheet": "#37241a",
    "open": "#bdb2d8",
    "open-sheet": "#2a2636",
    "mark": "#5a431f",
    "track": "#465160",
    "bar": "#3f6f9c",
    "grave-bar": "#93592f",
}


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);
 font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
 font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
header,main,footer{max-width:58rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:2.5rem}
a{color:var(--calm)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--calm);
 outline-offset:2px;border-radius:3px}
.brand{max-width:none;margin:0 0 1.75rem;font-size:.8rem;letter-spacing:.08em;
 text-transform:uppercase;color:var(--soft);border-bottom:1px solid var(--line);
 padding-bottom:.6rem}
.brand b{color:var(--ink)}
h1{font-size:1.75rem;line-height:1.3;font-weight:650;letter-spacing:-.01em;margin:.4rem 0 .6rem;
 max-width:44rem}
h2{font-size:1.25rem;font-weight:650;margin:0 0 .5rem;letter-spacing:-.005em}
h3{font-size:1rem;font-weight:650;margin:0 0 .35rem}
h4{font-size:.8rem;font-weight:600;color:var(--soft);margin:0 0 .35rem}
p{margin:0 0 .75rem;max-width:44rem}
.behind{font-size:1.05rem;color:var(--soft)}
.faint,small,.foot{color:var(--soft)}
.faint{font-size:.875rem}
small{display:block;font-size:.78rem;line-height:1.4;font-weight:400}
section{margin:3.25rem 0 0;scroll-margin-top:1rem}
.block{margin:1.75rem 0 0}
.block+h3{margin-top:2.25rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);
 white-space:nowrap}
.skip{position:absolute;left:-100vw}
.skip:focus{left:1rem;top:.5rem;background:var(--paper);padding:.3rem .6rem}
.chip{display:inline-block;font-size:.78rem;font-weight:650;line-height:1.5;padding:.05rem .6rem;
 border-radius:1rem;border:1px solid currentColor;white-space:nowrap}
.chips a{text-decoration:none;margin-left:.5rem}
.chip::before{margin-right:.4em}
.chip.grave,.chip.found{color:var(--grave);background:var(--grave-sheet)}
.chip.grave::before,.chip.found::before{content:"\\25A0"}
.chip.calm,.chip.below{color:var(--calm);background:var(--calm-sheet)}
.chip.calm::before,.chip.below::before{content:"\\25CB"}
.chip.open,.chip.undecided,.chip.pruned{color:var(--open);background:var(--open-sheet)}
.chip.open::before,.chip.undecided::before{content:"\\25B3"}
.chip.pruned::before{content:"\\00B7"}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.35rem 1.25rem;padding:.7rem 0;
 margin:2rem 0 0;border-block:1px solid var(--line);font-size:.9rem}
nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
.cautions{margin:1.75rem 0 0;border:1px solid var(--grave);border-left-width:5px;border-radius:4px;
 background:var(--grave-sheet);padding:1rem 1.25rem}
.cautions h2{font-size:1.05rem}
.cautions ul{margin:0;padding:0;list-style:none}
.cautions li{margin:.5rem 0 0;font-size:.925rem}
.cautions strong{color:var(--grave);margin-right:.35rem}
.cautions strong::after{content:":"}
.clear{max-width:none;border-left:5px solid var(--calm);background:var(--calm-sheet);
 padding:.6rem 1rem; border-radius:4px;margin-top:1.75rem;font-size:.925rem}
.remark{border-left:3px solid var(--grave);padding-left:.9rem;margin-top:1rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:0 0 .6rem}
caption{text-align:left;font-size:.875rem;color:var(--soft);padding:.5rem 0}
th,td{text-align:left;vertical-align:top;padding:.5rem .9rem .5rem 0;
 border-bottom:1px solid var(--line);font-weight:400}
thead th{color:var(--soft);font-size:.8rem;vertical-align:bottom;padding-bottom:.25rem}
th:last-child,td:last-child{padding-right:0}
.number{text-align:right;white-space:nowrap}
.number small{white-space:normal}
.foot{font-size:.85rem}
.wide{overflow-x:auto}
.chart th[scope=row]{width:30%}
.chart .pic{width:36%;padding-right:1.4rem;padding-left:.4rem}
.chart.sizes th[scope=row]{width:8rem}
svg{display:block;overflow:visible}
svg text{fill:var(--soft);font-size:11px}
.track{stroke:var(--track);stroke-width:1}
.interval{border-right:1px solid transparent;background:repeating-linear-gradient(to right,
 var(--track) 0 1px,transparent 1px 20%) 0 50%/100% 7px no-repeat}
.interval .bar{stroke:var(--bar);stroke-width:7}
.interval .end{stroke:var(--calm);stroke-width:2}
.interval .dot{fill:var(--calm)}
.interval.grave .bar{stroke:var(--grave-bar)}
.interval.grave .end{stroke:var(--grave)}
.interval.grave .dot{fill:var(--grave)}
.interval.open .bar,.interval.few .bar{stroke:var(--open);stroke-width:4;stroke-dasharray:3 3}
.interval.open .end,.interval.few .end{stroke:var(--open)}
.interval.open .dot,.interval.few .dot{fill:var(--paper);stroke:var(--open);stroke-width:2}
.mark{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3}
.noise{stroke:var(--soft);stroke-width:3}
.below{color:var(--grave)}
.few{color:var(--open)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.4rem;font-size:.8rem;color:var(--soft);
 margin:.6rem 0 0;max-width:none}
.key{display:inline-block;width:1.5rem;height:.5rem;margin-right:.45rem;vertical-align:middle;
 background:var(--bar)}
.key.grave{background:var(--grave-bar)}
.key.open{background:none;border-top:4px dashed var(--open);height:0}
.key.line{background:none;width:0;height:1rem;border-left:2px dashed var(--ink)}
.key.noise{background:var(--soft);height:3px}
.lattice{width:100%;height:auto;margin:.75rem 0;max-width:none}
.lattice .edge{stroke:var(--line);stroke-width:1}
.lattice .implies{stroke:var(--grave-bar);stroke-width:1.5}
.node{cursor:pointer;outline-offset:4px}
.node .reach{fill:transparent}
.node.found>rect{fill:var(--grave)}
.node.below>circle:not(.reach){fill:var(--paper);stroke:var(--calm);stroke-width:2.5}
.node.pruned>circle:not(.reach){fill:var(--soft)}
.node.open>polygon{fill:var(--paper);stroke:var(--open);stroke-width:1.5}
.node.undecided>polygon{fill:var(--paper);stroke:var(--open);stroke-width:2.5}
.node text{fill:var(--ink);font-size:11.5px;paint-order:stroke;stroke:var(--paper);
 stroke-width:5px;stroke-linejoin:round}
.node:hover text{text-decoration:underline}
.levels{list-style:none;margin:.75rem 0;padding:0}
.levels>li{margin:.75rem 0}
.levels ul{list-style:none;display:flex;flex-wrap:wrap;gap:.4rem;margin:0;padding:0}
.set a{display:inline-block;padding:.1rem .6rem;border-radius:4px;border:1.5px solid var(--calm);
 color:var(--calm);text-decoration:none;font-size:.85rem;background:var(--paper)}
.set a:hover{text-decoration:underline}
.set.found a{background:var(--grave-sheet);border-color:var(--grave);color:var(--grave);
 font-weight:650}
.set.undecided a{border-style:dashed;border-color:var(--open);color:var(--open)}
.set.pruned a,.set.open a{border-color:var(--line);color:var(--soft)}
.rest{font-size:.85rem;color:var(--soft);padding:.15rem .3rem}
.whole .levels{display:none}
.reasons{margin:.5rem 0 1rem}
.reasons ul{list-style:none;margin:0;padding:0}
.reasons li{display:none;border:1px solid var(--line);border-radius:4px;background:var(--sheet);
 padding:.6rem .9rem;margin:.4rem 0;font-size:.925rem;scroll-margin-top:70vh}
.reasons li:target,.reasons:target li{display:block}
.reasons .chip{margin:0 .6rem}
.reasons:target{scroll-margin-top:1rem}
.reasons .hint .chip{margin:0 .5rem 0 0;font-weight:400}
.hint{font-size:.85rem;color:var(--soft);margin:0}
.stack rect{stroke:var(--paper);stroke-width:.5}
.stack .found{fill:var(--grave)}
.stack .undecided{fill:var(--open)}
.stack .below{fill:var(--bar)}
.stack .pruned,.stack .open{fill:var(--line)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1.1rem;
 margin:.75rem 0}
.card{border:1px solid var(--line);border-radius:6px;padding:.5rem 1rem .8rem;min-width:0}
.card table{font-size:.875rem;table-layout:fixed}
.card th,.card td{padding:.3rem .6rem .3rem 0}
.card tbody th,.card .both td{color:var(--soft)}
.card td,.card thead th{text-align:center}
.card thead th:first-child{width:40%}
.card .changed th{color:var(--ink);font-weight:650}
.card .outcome th,.card .outcome td{border-bottom:0;padding-top:.6rem}
.card .outcome th{color:var(--ink);font-weight:650}
.card details{margin:.3rem 0 0}
mark{background:var(--mark);color:var(--ink);font-weight:650;padding:.05rem .4rem;border-radius:3px}
details{margin:1rem 0 0;font-size:.9rem}
summary{cursor:pointer;color:var(--calm);padding:.2rem 0}
pre{background:var(--sheet);border:1px solid var(--line);border-radius:4px;padding:.7rem .9rem;
 margin:.5rem 0;overflow-x:auto;font-size:.8rem;line-height:1.5}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
 font-size:.92em}
pre .line{display:block;white-space:pre-wrap;overflow-wrap:anywhere}
pre .line+.line{margin-top:.4rem}
.matrix{width:auto;min-width:14rem;margin:.5rem 0}
.matrix th,.matrix td{padding:.45rem .8rem;border:1px solid var(--line);text-align:right;
 max-width:12rem}
.matrix th{text-align:left}
.same{color:var(--soft)}
.shade1{background:color-mix(in srgb,var(--grave-bar) 10%,var(--paper))}
.shade2{background:color-mix(in srgb,var(--grave-bar) 20%,var(--paper))}
.shade3{background:color-mix(in srgb,var(--grave-bar) 32%,var(--paper))}
.shade4{background:color-mix(in srgb,var(--grave-bar) 48%,var(--paper))}
.shade5{background:color-mix(in srgb,var(--grave-bar) 65%,var(--paper));font-weight:650}
.conditions span{background:var(--sheet);border-radius:3px;padding:.05rem .35rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,13rem),1fr));
 gap:.9rem 1.5rem;margin:1.25rem 0}
.facts div{min-width:0}
.facts dt{font-size:.78rem;color:var(--soft)}
.facts dd{margin:0}
.statement{border:1px solid var(--line);background:var(--sheet);border-radius:4px;
 padding:.9rem 1.1rem;max-width:none}
.sign{display:grid;grid-template-columns:1fr 1fr;gap:2.4rem 2rem;margin:2.5rem 0 0}
.sign div{border-top:1px solid var(--ink);padding-top:.3rem;font-size:.85rem;color:var(--soft)}
footer{margin-top:4rem;padding-bottom:3rem;font-size:.85rem;color:var(--soft)}
footer p{border-top:1px solid var(--line);padding-top:.8rem;max-width:none}
@media (max-width:44rem){
 header,main,footer{padding-inline:1rem}
 header{padding-top:1.25rem}
 h1{font-size:1.35rem}
 .chart,.chart caption:not(.unseen),.chart tbody,.chart thead{display:block}
 .chart tr{display:grid;grid-template-columns:repeat(auto-fit,minmax(5.5rem,1fr));gap:0 .8rem;
  border-bottom:1px solid var(--line);padding:.6rem 0}
 .chart th,.chart td,.chart th[scope=row],.chart .pic{border:0;padding:.1rem 0;width:auto}
 .chart th[scope=row],.chart .foot{grid-column:1/-1}
 .chart .pic{grid-column:1/-1;padding:.1rem .3rem}
 .chart thead tr{padding:0}
 .chart thead th:not(.pic){display:none}
 .chart td.number{text-align:left;font-size:.85rem}
 .chart td[data-label]::before{content:attr(data-label);display:block;font-size:.72rem;
  color:var(--soft)}
 .whole .lattice{display:none}
 .whole .levels{display:block}
 .sign{grid-template-columns:1fr}
}
@media print{
 @page{margin:16mm 14mm}
 body{font-size:10.5pt}
 header,main,footer{max-width:none;padding:0}
 header{padding-top:0}
 nav,.skip,.hint{display:none}
 section{margin-top:1.6rem}
 h1{font-size:17pt}
 h2,h3,h4,summary,caption,thead,.block>p:not(:last-child),section>p:nth-child(2){break-after:avoid}
 tbody tr:first-child{break-before:avoid}
 .scale text:nth-child(2),.scale text:nth-child(5),details.inputs{display:none}
 .card{font-size:9pt}
 tr,.card,.cautions,.facts div,.sign,svg{break-inside:avoid}
 thead{display:table-header-group}
 details::details-content{content-visibility:visible;display:block;height:auto}
 summary{list-style:none;color:var(--soft)}
 .reasons li{display:block;border:0;border-bottom:1px solid var(--line);background:none;
  padding:.2rem 0;margin:0;font-size:9pt;break-inside:avoid}
 .wide{overflow:visible}
 pre{white-space:pre-wrap}
 *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""

STYLE = (
    f":root{{color-scheme:light dark;{_variables(LIGHT)}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}{_RULES}"
)
