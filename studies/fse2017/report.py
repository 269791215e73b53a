def to_markdown(m): return ""
def to_html(m): return ""
def disagreements(m): return []
