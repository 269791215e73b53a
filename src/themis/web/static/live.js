// The run as it goes on: its stream of events as numbers, intervals and sets, once a frame.
const live = document.querySelector("#live");
const at = (id) => live.querySelector(`#${id}`);
const rows = new Map(); // of the chart: scores by what they are of, searches by their measure
const drawn = new Map(); // the element of each
const looks = []; // executions at times, of the last seconds
let expected = +live.dataset.expected, executions = 0, last, stream, drawing = false, spoken = -Infinity;

const number = (value) => Math.round(value).toLocaleString("en-GB");
const percent = (value, round) => `${(round(1000 * value) / 10).toFixed(1)} %`;
const time = (seconds) => seconds < 60 ? `${Math.round(seconds)} s`
  : seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;

function hear(event) {
  if (event.event === "Forecast") { expected = event.executions; return; }
  last = event;
  executions = event.executions ?? executions;
  if (event.failures) showFailures(event.failures, event.said ?? {});
  if (event.event === "Activity") {
    looks.push(event);
    while (looks.length > 2 && event.seconds - looks[0].seconds > 5) looks.shift();
  }
  if (event.event === "Progress") {
    rows.set([event.measure, event.against, event.output].join("\n"), event);
  } else if (event.event === "SearchProgress") rows.set(`search ${event.measure}`, event);
  if (!drawing) { drawing = true; requestAnimationFrame(draw); }
}

function draw() {
  drawing = false;
  state("running", last.line);
  const first = looks[0], now = looks.at(-1);
  const pace = now && now.seconds > first.seconds
    ? (now.executions - first.executions) / (now.seconds - first.seconds) : 0;
  const known = last.line.match(/([^,·]+) left/)?.[1];
  at("executions").textContent = number(executions);
  at("pace").textContent = pace ? number(pace) : "–";
  at("elapsed").textContent = time(last.seconds);
  const left = Math.min(
    expected > executions && pace ? (expected - executions) / pace : Infinity,
    Math.max((live.dataset.limit ?? Infinity) - last.seconds, 0));
  at("left").textContent = left < Infinity ? time(left) : known ?? "–";
  const high = Math.max(...[...rows.values()].map((each) => each.high < 1 ? each.high : 0));
  const end = [0.05, 0.1, 0.2, 0.5].find((each) => 0 < high && high <= each) ?? 1;
  for (const [key, event] of rows) drawRow(key, event, end);
  if (performance.now() - spoken > 20000) { // a screen reader hears where it stands now and then
    spoken = performance.now();
    at("told").textContent = last.line;
  }
}

function drawRow(key, event, end) {
  const row = drawn.get(key) ?? at("row").content.firstElementChild.cloneNode(true);
  if (!drawn.has(key)) at("chart").append(row);
  drawn.set(key, row);
  const [name, ends, sets] = row.querySelectorAll("span"), bar = row.querySelector("rect");
  const isSearch = event.event === "SearchProgress";
  const unknown = !isSearch && event.low <= 0 && event.high >= 1;
  const [low, high] = isSearch ? [0, event.decided / event.total]
    : [event.low / end, Math.min(event.high / end, 1)];
  name.textContent = isSearch ? `search, ${event.measure}`
    : [event.measure, event.against.join(", "), event.output].filter(Boolean).join(" · ");
  ends.textContent = isSearch
    ? `${number(event.decided)} of ${number(event.total)} sets, ${number(event.found)} found`
    : unknown ? "not known yet" : `${percent(event.low, Math.floor)} to ${percent(event.high, Math.ceil)}`;
  bar.setAttribute("x", 100 * low);
  bar.setAttribute("width", Math.max(100 * (high - low), 0.5));
  row.classList.toggle("unknown", unknown);
  row.classList.toggle("searched", isSearch);
  row.querySelector("small").textContent = isSearch ? "" : `0 to ${100 * end} %`;
  sets.replaceChildren(...(event.latest ?? []).map((each) => {
    const chip = document.createElement("b");
    chip.textContent = each.join(", ");
    return chip;
  }));
}

function showFailures(counts, said) {
  const kinds = Object.entries(counts);
  at("failures").textContent = kinds.map(([kind, count]) =>
    `${number(count)} × ${kind}${said[kind] ? `: ${said[kind]}` : ""}`).join(" · ");
}

function state(word, text) {
  const chip = live.querySelector(".chip");
  chip.textContent = word;
  chip.className = `chip ${word === "running" ? "calm" : "pruned"}`;
  at("now").textContent = text;
}

function listen() {
  stream = new EventSource(`/runs/${live.dataset.run}/events`);
  stream.onmessage = (message) => hear(JSON.parse(message.data));
  stream.addEventListener("waits", (message) => state(...JSON.parse(message.data)));
  stream.addEventListener("over", (message) => {
    stream.close();
    location.replace(JSON.parse(message.data));
  });
  stream.onerror = () => state("not heard", stream.readyState === EventSource.CLOSED
    ? "The page's server does not answer, or too many pages watch: load this page again."
    : "No answer from the page's server; trying again. What was learned is kept.");
}

listen();
document.addEventListener("visibilitychange", () => { // a browser has few streams for all its tabs
  stream.close();
  if (!document.hidden) listen();
});
