// Runs before the first paint, so that a dark page does not flash white; page.js has the switch.
try {
  const kept = localStorage.getItem("longtail-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // Without storage, the page follows the system.
}
