// A form is sent once, and says that it is worked on.
document.addEventListener("submit", (event) => {
  const form = event.target, button = event.submitter;
  if (event.defaultPrevented) return; // a script sends it
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  setTimeout(() => {
    if (!button) return;
    button.textContent = "Working …";
    button.setAttribute("aria-busy", "true");
  }, 400);
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
