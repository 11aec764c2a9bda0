// Runs before the first paint, so that a page kept dark never flashes white; page.js has the switch.
try {
  const kept = localStorage.getItem("longtail-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // A browser that keeps nothing follows the system.
}
