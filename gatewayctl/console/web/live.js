// Renews the part of the page with the id live, while the page is visible and the focus is not in that part.
"use strict";
setInterval(async () => {
  const part = document.getElementById("live");
  if (!part || document.hidden || part.contains(document.activeElement)) return;
  try {
    const response = await fetch(location.href, {credentials: "same-origin"});
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
    if (next && !part.contains(document.activeElement)) part.replaceWith(next);
  } catch (stopped) { /* the console has ended: the page stays as it is */ }
}, 5000);
