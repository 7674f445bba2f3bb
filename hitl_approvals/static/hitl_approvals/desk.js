/* Keys for the review desk, and the count of what arrived. Nothing needs this file: without
   it every page works, and no key is promised. No key decides: `a` and `r` only move there.
   Where a key leads stands in the pages: data-desk-key on what it moves to or presses,
   data-desk-hint on what shows it. All words come from the server. */
(() => {
  "use strict";

  const STORED = "hitl-desk-keys";
  const EVERY = 30000;
  const desk = document.querySelector(".desk");
  if (!desk) return;

  const sheet = document.getElementById("desk-keys");

  /* On a question `a` leads to the answer, whatever kind of field that is. */
  const answer = desk.querySelector('#decide button[value="respond"]');
  const field = answer && answer.form.querySelector("input:not([type=hidden]), select, textarea");
  if (field) {
    field.dataset.deskKey = "a";
    const label = field.labels[0];
    if (label && label.htmlFor) label.dataset.deskHint = "a";
  }

  /* ---- Whether the keys are on: a choice of this browser ---------------------------------- */
  const stored = () => {
    try { return localStorage.getItem(STORED); } catch { return null; }
  };
  let on = stored() !== "off";

  const shown = (one) => one.getClientRects().length > 0 && !one.disabled;
  const at = (key, within = document) =>
    [...within.querySelectorAll(`[data-desk-key="${key}"]`)].find(shown);

  const mark = () => {
    for (const old of desk.querySelectorAll("kbd[data-desk-kbd]")) old.remove();
    for (const one of document.querySelectorAll("[data-desk-key]")) {
      if (!on) one.removeAttribute("aria-keyshortcuts");
      else one.setAttribute("aria-keyshortcuts", one.dataset.deskKey);
    }
    if (!on) return;
    for (const one of desk.querySelectorAll("[data-desk-hint]")) {
      const kbd = document.createElement("kbd");
      kbd.dataset.deskKbd = "";
      kbd.setAttribute("aria-hidden", "true");
      kbd.textContent = one.dataset.deskHint;
      one.append(" ", kbd);
    }
  };

  for (const box of document.querySelectorAll("[data-desk-switch]")) {
    box.hidden = false;
    const tick = box.querySelector("input");
    tick.checked = on;
    tick.addEventListener("change", () => {
      on = tick.checked;
      try { localStorage.setItem(STORED, on ? "on" : "off"); } catch { /* for this page */ }
      for (const other of document.querySelectorAll("[data-desk-switch] input")) other.checked = on;
      mark();
    });
  }

  /* ---- The sheet --------------------------------------------------------------------------- */
  const open = () => {
    if (sheet && !sheet.open) sheet.showModal();
  };
  for (const link of document.querySelectorAll("[data-desk-sheet]")) {
    link.addEventListener("click", (event) => {
      if (!sheet || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open();
    });
  }
  if (sheet) sheet.querySelector("[data-desk-close]").addEventListener("click", () => sheet.close());

  /* ---- Rows of the list -------------------------------------------------------------------- */
  const rows = () => [...desk.querySelectorAll("tr[data-desk-row]")];
  const here = () => {
    const focused = document.activeElement;
    return (focused && focused.closest("tr[data-desk-row]")) || desk.querySelector("tr.desk-here");
  };
  const stand = (row) => {
    for (const old of desk.querySelectorAll("tr.desk-here")) old.classList.remove("desk-here");
    row.classList.add("desk-here");
  };
  const step = (by) => {
    const all = rows();
    if (!all.length) return false;
    const now = all.indexOf(here());
    const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by;
    const row = all[Math.max(0, Math.min(all.length - 1, next))];
    stand(row);
    row.querySelector("a[href]").focus();
    return true;
  };
  desk.addEventListener("focusin", (event) => {
    const row = event.target.closest("tr[data-desk-row]");
    if (row) stand(row);
  });

  /* ---- Keys -------------------------------------------------------------------------------- */
  const moveTo = (key) => {
    const target = at(key);
    if (!target) return false;
    target.focus();
    target.scrollIntoView({ block: "nearest" });
    return true;
  };
  const press = (key, within = document) => {
    const target = at(key, within);
    if (!target) return false;
    target.click();
    return true;
  };
  /* A theme may leave out the crumbs that `u` presses. */
  const back = () => {
    if (!desk.dataset.deskQueue) return false;
    location.assign(desk.dataset.deskQueue);
    return true;
  };
  const choose = () => {
    const row = here();
    const tick = row && row.querySelector("input[type=checkbox]");
    if (!tick || tick.disabled) return false;
    tick.click();
    return true;
  };
  const actions = {
    a: () => moveTo("a"),
    r: () => moveTo("r"),
    "/": () => moveTo("/"),
    e: () => press("e"),
    s: () => press("s"),
    u: () => press("u") || back(),
    c: () => (rows().length ? Boolean(here()) && press("c", here()) : press("c")),
    x: choose,
    j: () => (rows().length ? step(1) : press("j")),
    k: () => (rows().length ? step(-1) : press("k")),
    "?": () => { open(); return true; },
  };

  const typing = (target) =>
    target.isContentEditable ||
    target.matches("textarea, select") ||
    (target.matches("input") && !["checkbox", "radio", "button", "submit"].includes(target.type));

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (!on || !(target instanceof Element) || event.isComposing || event.repeat) return;
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      if (!target.matches('textarea[data-desk-key="r"]')) return;
      const reject = target.form.querySelector('button[data-desk-hint="r"]');
      if (!reject) return;
      event.preventDefault();
      target.form.requestSubmit(reject);
      return;
    }
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (typing(target)) {
      if (event.key === "Escape" && desk.contains(target)) target.blur();
      return;
    }
    const action = Object.hasOwn(actions, event.key) && actions[event.key];
    if (action && action()) event.preventDefault();
  });

  /* ---- What is shown once ------------------------------------------------------------------ */
  for (const button of desk.querySelectorAll("[data-desk-copy]")) {
    const field = document.getElementById(button.dataset.deskCopy);
    const said = desk.querySelector("[data-desk-said]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
      } catch {
        // Without TLS there is no clipboard; the old way asks the selection.
        if (!document.execCommand("copy")) return;
      }
      said.textContent = button.dataset.deskDone;
      said.classList.remove("desk-vh");
    });
  }

  /* ---- What arrived since the page was opened ---------------------------------------------- */
  const arrived = desk.querySelector("[data-desk-arrived]");
  if (arrived) {
    let timer = 0;
    let asked = Date.now();
    let told = 0;

    const tell = (news) => {
      if (!news.count || news.count === told) return;
      told = news.count;
      const link = document.createElement("a");
      link.href = news.url;
      link.textContent = news.link;
      const words = document.createElement("span");
      words.textContent = news.text;
      arrived.replaceChildren(words, " ", link);
    };
    const ask = async () => {
      asked = Date.now();
      let last = false;
      try {
        const response = await fetch(arrived.dataset.deskArrived, {
          credentials: "same-origin", redirect: "manual", headers: { Accept: "application/json" },
        });
        // Logged out, or no right any more: a page that is opened anew will say so.
        if (response.ok) {
          const news = await response.json();
          tell(news);
          last = news.last;
        } else last = response.status < 500;
      } catch { /* The line is down: ask again later. */ }
      if (!last) wait();
      else document.removeEventListener("visibilitychange", turn);
    };
    const wait = () => {
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(ask, Math.max(0, asked + EVERY - Date.now()));
    };
    const turn = () => (document.hidden ? clearTimeout(timer) : wait());
    document.addEventListener("visibilitychange", turn);
    wait();
  }

  mark();
})();
