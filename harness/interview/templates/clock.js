"use strict";
const clock = document.getElementById("clock");
if (clock && clock.dataset.ends) {
  const show = () => {
    const left = Math.round((Date.parse(clock.dataset.ends) - Date.now()) / 1000);
    const seconds = Math.abs(left);
    const words = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    clock.textContent = left < 0 ? `${words} over the time` : `${words} left`;
  };
  show();
  setInterval(show, 1000);
}
