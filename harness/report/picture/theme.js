"use strict";
// Light, dark, or as the system has it.

class ThemeSwitch {
  static NEXT = { auto: "light", light: "dark", dark: "auto" };
  static SIGN = { auto: "◐", light: "☀", dark: "☾" };

  constructor(onchange) {
    this.onchange = onchange;
    this.button = Units.el("button", { type: "button", class: "theme", onclick: () => this.set(ThemeSwitch.NEXT[this.theme]) });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.onchange());
    let kept = null;
    try { kept = window.localStorage.getItem("mews-theme"); } catch { /* a page opened from a file may have none */ }
    this.set(kept in ThemeSwitch.NEXT ? kept : "auto");
  }

  set(theme) {
    this.theme = theme;
    if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
    try { window.localStorage.setItem("mews-theme", theme); } catch { /* then it is not kept */ }
    const label = `theme: ${theme === "auto" ? "same as the system" : theme}`;
    this.button.replaceChildren(Units.el("span", { "aria-hidden": "true" }, ThemeSwitch.SIGN[theme]));
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
    this.onchange();
  }
}
