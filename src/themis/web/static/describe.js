// Describe: while a form is filled in, what it would make of the file is checked and shown beside.
const state = document.querySelector("#state");
const text = document.querySelector("#text");
const token = document.querySelector('meta[name="form-token"]').content;
let timer, latest = 0;

async function check(form) {
  const number = ++latest;
  const body = new URLSearchParams(new FormData(form));
  const told = await fetch("/describe/check", {
    method: "POST", headers: {"X-Themis-Token": token}, body,
  }).catch(() => null);
  if (number !== latest) return;
  if (!told?.ok) {
    state.textContent = "The page's server does not answer: was it ended?";
    return;
  }
  const found = await told.json();
  state.innerHTML = found.state;
  if (found.text !== undefined && !form.contains(text)) text.value = found.text;
}

for (const form of document.querySelectorAll("form.checked")) {
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 300, form);
  });
}
document.querySelector("#edit :is(input:not([type=hidden]), select, textarea)")?.focus();
