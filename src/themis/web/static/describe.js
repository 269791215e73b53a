// Describe: while a form is filled in, it shows what it would make of the file, and what is wrong.
const text = document.querySelector("#text");
const token = document.querySelector('meta[name="form-token"]').content;
let timer, latest = 0;

async function check(form) {
  const number = ++latest, told = form.querySelector("output");
  const body = new URLSearchParams(new FormData(form));
  const headers = {"X-Themis-Token": token};
  const answer = await fetch("/describe/check", {method: "POST", headers, body}).catch(() => null);
  if (number !== latest) return;
  if (!answer?.ok) {
    told.textContent = "The page's server does not answer: was it ended?";
    return;
  }
  const found = await answer.json();
  told.innerHTML = found.state;
  if (found.text !== undefined && !form.contains(text)) text.value = found.text;
}

for (const form of document.querySelectorAll("form.checked")) {
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 300, form);
  });
}
document.querySelector("#edit :is(input:not([type=hidden]), select, textarea)")?.focus();
