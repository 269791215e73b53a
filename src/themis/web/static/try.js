// What if: the form is sent when a value changes, one question at a time, the latest last.
const form = document.querySelector("form.asked");
const answer = document.querySelector("#answer");
const token = document.querySelector('meta[name="form-token"]').content;
let timer, busy = false, again = false;

async function ask() {
  if (busy) { again = true; return; }
  busy = true;
  answer.setAttribute("aria-busy", "true");
  try {
    const headers = {"X-Themis-Token": token, "X-Themis-Part": "answer"};
    const body = new URLSearchParams(new FormData(form));
    const told = await fetch("/try", {method: "POST", headers, body});
    if (told.redirected) location.assign(told.url);
    const text = await told.text();
    if (told.ok) answer.innerHTML = text;
    else answer.replaceChildren(...new DOMParser().parseFromString(text, "text/html")
      .querySelector("main").childNodes);
  } catch {
    answer.textContent = "The page's server does not answer: was it ended?";
  } finally {
    busy = false;
    answer.removeAttribute("aria-busy");
    if (again) { again = false; ask(); }
  }
}

form?.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 250); });
form?.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(); });
