// What the pages cannot do without a script: live numbers, keys, dialogs, copying. Everything reads and posts
// without it.
(() => {
  "use strict";
  const root = document.documentElement;
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const link = (path) => root.dataset.root + path;

  // A sentence about what happened goes after some seconds.
  const toastBox = one(".toast");
  let toastTimer = 0;
  const fade = () => {
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => { toastBox.textContent = ""; }, 4000);
  };
  const toast = (text) => { if (toastBox) { toastBox.textContent = text; fade(); } };
  if (toastBox?.textContent) fade();

  // The theme is kept in a cookie, which only the server writes.
  const themeForm = one("#theme");
  const isDark = () =>
    (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const flip = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    const fields = new URLSearchParams(new FormData(themeForm));
    fields.set("theme", root.dataset.theme);
    fetch(themeForm.action, { method: "POST", body: fields, redirect: "manual" }).catch(() => {});
  };
  themeForm?.addEventListener("submit", (event) => { event.preventDefault(); flip(); });

  // Ticked rows.
  const picks = () => all(".pick");
  let lastPick = null;
  const count = () => {
    const number = one("[data-picked]");
    if (number) number.textContent = picks().filter((pick) => pick.checked).length;
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches(".pick")) { lastPick = event.target; count(); }
    if (event.target.matches("[data-all]")) {
      picks().forEach((pick) => { pick.checked = event.target.checked; });
      count();
    }
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
    if (event.target.matches("#f-script_type")) functionsOf(event.target.value).catch(() => {});
  });
  // Returns an element of another page.
  const oneOf = async (href, selector) => {
    const answer = await fetch(href, { headers: { accept: "text/html" } });
    return one(selector, new DOMParser().parseFromString(await answer.text(), "text/html"));
  };
  // The functions of the script type that is chosen.
  const functionsOf = async (type) => {
    const found = await oneOf(link(`/submit?type=${encodeURIComponent(type)}`), "#functions");
    if (found) one("#functions").replaceChildren(...document.adoptNode(found).childNodes);
  };
  const pickUpTo = (to) => {
    const boxes = picks(), from = Math.max(0, boxes.indexOf(lastPick)), end = boxes.indexOf(to);
    boxes.slice(Math.min(from, end), Math.max(from, end) + 1).forEach((pick) => { pick.checked = true; });
    count();
  };

  // Copying, pressed buttons, and questions as dialogs.
  const ask = one("#ask");
  const question = async (href) => {
    const form = await oneOf(href, "[data-question]");
    if (!form) { location.href = href; return; }
    ask.replaceChildren(document.adoptNode(form));
    const keep = one("[data-keep]", ask);
    keep?.addEventListener("click", (event) => { event.preventDefault(); ask.close(); });
    ask.showModal();
    keep?.focus();
  };
  document.addEventListener("click", async (event) => {
    const target = event.target.closest("[data-copy], [data-ask], [data-toggle]");
    if (!target || event.ctrlKey || event.metaKey) return;
    if (target.dataset.copy) {
      try {
        await navigator.clipboard.writeText(one(target.dataset.copy).textContent);
        toast("Copied.");
      } catch { toast("The browser does not let this page copy."); }
    } else if ("ask" in target.dataset) {
      event.preventDefault();
      question(target.href).catch(() => { location.href = target.href; });
    } else {
      const isOn = target.getAttribute("aria-pressed") !== "true";
      target.setAttribute("aria-pressed", isOn);
      one(target.dataset.toggle)?.classList.toggle(target.dataset.class || "only", isOn);
    }
  });

  // Times: relative ones go on, absolute ones are in the zone of the reader.
  const age = (ms, at) => {
    const s = Math.floor(ms / 1000);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return `${Math.floor(s / 3600)} h`;
    const two = (n) => String(n).padStart(2, "0");
    return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  };
  const times = (from = document) => {
    const now = Date.now();
    const write = (kind, textOf) => all(`time[data-${kind}]`, from).forEach((time) => {
      time.textContent = textOf(new Date(time.dateTime), time);
    });
    write("ago", (at) => age(Math.max(0, now - at), at));
    write("was", (at) => age(Math.max(0, now - at), at) + (now - at < 86400000 ? " ago" : ""));
    write("until", (at) => (at <= now ? "now" : (at - now < 86400000 ? "in " : "") + age(at - now, at)));
    write("clock", (at, time) => {
      const fractionalSecondDigits = time.dataset.clock === "ms" ? 3 : undefined;
      const parts = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits };
      return at.toLocaleTimeString("en-GB", parts);
    });
  };
  times();
  setInterval(times, 10000);

  // Live parts. An element is changed in place, so that focus, ticks and what is open stay.
  const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
  const morph = (old, now) => {
    if (!isAlike(old, now)) { old.replaceWith(now); return; }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!now.hasAttribute(name) && name !== "open" && name !== "class") old.removeAttribute(name);
    }
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    children(old, now);
  };
  const children = (old, now) => {
    const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      const same = child.id ? known.get(child.id) : at && isAlike(at, child) && !at.id ? at : null;
      if (same) {
        if (same !== at) old.insertBefore(same, at); else at = at.nextSibling;
        morph(same, child);
      } else old.insertBefore(child, at);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  };
  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };
  const log = () => one(".log");
  const isFollowing = () => one("#follow")?.getAttribute("aria-pressed") === "true";
  const toEnd = () => { const box = log(); if (box) box.scrollTop = box.scrollHeight; };
  const apply = ([what, id, html]) => {
    const old = document.getElementById(id);
    if (!old) return;
    const content = parsed(html);
    times(content);
    if (what === "set") morph(old, content.firstElementChild);
    else if (what === "add") old.append(content);
    else if (what === "rows" && !all(".pick:checked", old).length) children(old, content);
    if (old.closest?.(".log") && isFollowing()) toEnd();
  };

  const main = one("main[data-live]"), lamp = one("#live"), lampText = one("#live-text");
  let events = null, lostAt = 0, beatAt = 0;
  // The server beats every 5 s while it renders the page from a Redis that answers.
  const SILENCE_MAX = 12000;
  const beat = () => {
    if (lostAt === 0 && lamp?.classList.contains("off")) say("Live", false);
    beatAt = Date.now();
  };
  const watch = () => {
    const silent = events && beatAt && Date.now() - beatAt > SILENCE_MAX;
    const since = lostAt || (silent ? beatAt : 0);
    root.classList.toggle("stale", Boolean(since));
    if (since) say(`Not live for ${Math.round((Date.now() - since) / 1000)} s`, true);
  };
  const say = (text, isOff) => {
    if (lampText && lampText.textContent !== text) lampText.textContent = text;
    lamp?.classList.toggle("off", isOff);
  };
  const close = () => { events?.close(); events = null; };
  const open = () => {
    if (events || document.hidden || !main) return;
    events = new EventSource(link(`/events?page=${encodeURIComponent(main.dataset.live)}`));
    events.onmessage = (event) => {
      const { parts, away } = JSON.parse(event.data);
      lostAt = away ? lostAt || Date.now() : 0;
      say(away ?? "Live", Boolean(away));
      beatAt = Date.now();
      parts.forEach(apply);
      count();
    };
    events.onerror = () => {
      lostAt ||= Date.now();
      if (events?.readyState === EventSource.CLOSED) { close(); setTimeout(open, 5000); }
    };
    events.onopen = () => { lostAt = 0; beatAt = Date.now(); };
    events.addEventListener("beat", beat);
  };
  if (main) {
    open();
    setInterval(watch, 1000);
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    addEventListener("pagehide", close);
    addEventListener("pageshow", open);
  }
  // A page that says that Redis does not answer is loaded again until it does.
  if (one("#away")) setTimeout(() => location.reload(), 3000);

  // The log: scrolling up stops following, reaching the end goes on.
  const logBox = log();
  if (logBox && !location.hash) toEnd();
  logBox?.addEventListener("scroll", () => {
    const isAtEnd = logBox.scrollHeight - logBox.scrollTop - logBox.clientHeight < 8;
    one("#follow")?.setAttribute("aria-pressed", isAtEnd);
  });
  one("#follow")?.addEventListener("click", (event) => {
    const isOn = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", isOn);
    if (isOn) toEnd();
  });

  // Keys. g then a letter goes to a page; j and k move; x ticks; Enter opens.
  const keysOff = one("#keys-off");
  const isOff = () => { try { return localStorage.getItem("keys") === "off"; } catch { return false; } };
  if (keysOff) {
    keysOff.checked = isOff();
    keysOff.addEventListener("change", () => {
      try { localStorage.setItem("keys", keysOff.checked ? "off" : "on"); } catch { /* storage is off */ }
    });
  }
  const pages = { o: "/", j: "/jobs", q: "/queues", m: "/machines", c: "/cron", d: "/dead", l: "/limits", s: "/submit" };
  const rows = () => all("tbody tr").filter((row) => row.querySelector("a.id"));
  let leader = 0;
  const current = () => rows().find((row) => row.classList.contains("at"));
  const move = (by) => {
    const list = rows(), from = list.indexOf(current());
    if (!list.length) return;
    list[from]?.classList.remove("at");
    const row = list[Math.max(0, Math.min(list.length - 1, from + by))];
    row.classList.add("at");
    row.scrollIntoView({ block: "nearest" });
  };
  const press = (verb) => {
    const button = (current() && one(`[data-key="${verb}"]`, current())) || one(`main .actions [data-key="${verb}"]`);
    button?.click();
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (isOff() || one("dialog[open]")) return;
    if (leader && Date.now() - leader < 1000 && pages[event.key]) { location.href = link(pages[event.key]); return; }
    leader = event.key === "g" ? Date.now() : 0;
    const act = {
      "/": () => one("#q")?.focus(), j: () => move(1), k: () => move(-1), t: flip,
      f: () => one("#follow")?.click(), r: () => press("retry"), s: () => press("stop"),
      "?": () => one("#keys")?.showModal(),
      x: () => one(".pick", current() || root)?.click(),
      X: () => { const pick = current() && one(".pick", current()); if (pick) pickUpTo(pick); },
      Enter: () => one("a.id", current() || document.createElement("i"))?.click(),
    }[event.key];
    if (act && (event.key !== "Enter" || event.target === document.body)) { event.preventDefault(); act(); }
  });
})();
