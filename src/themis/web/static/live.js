// The run as it goes on: reads the stream of its events and shows where it stands.
const live = document.querySelector("#live");
const stream = new EventSource(`/runs/${live.dataset.run}/events`);

stream.onmessage = (message) => {
  const event = JSON.parse(message.data);
  live.querySelector("p").textContent = JSON.stringify(event);
};
stream.addEventListener("over", (message) => {
  stream.close();
  location.assign(JSON.parse(message.data));
});
