// Before anything is painted: light or dark as it was chosen, else as the system has it.
(() => {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("deltaspace-theme") || "auto";
  } catch {
    // storage is disabled
  }
  document.documentElement.dataset.theme = ["light", "dark"].includes(chosen) ? chosen : "auto";
})();
