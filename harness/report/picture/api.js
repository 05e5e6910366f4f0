"use strict";
// The session's HTTP interface. The token comes from the address' fragment, which no browser sends anywhere.

class SessionApi {
  constructor() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      sessionStorage.setItem("mews-token", given);
      history.replaceState(null, "", location.pathname + location.search);
    }
    this.token = given ?? sessionStorage.getItem("mews-token") ?? "";
  }

  keep(token) {
    this.token = token.trim();
    sessionStorage.setItem("mews-token", this.token);
  }

  async ask(method, path, body, options = {}) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", credentials: "omit", ...options });
    if (!response.ok) throw new SessionError(response.status, await SessionApi._reason(response));
    return response;
  }

  async json(method, path, body) {
    return (await this.ask(method, path, body)).json();
  }

  static async _reason(response) {
    const text = await response.text();
    try { return JSON.parse(text).error || text; } catch { return text || `${response.status} ${response.statusText}`; }
  }

  /** Lines from that number on as they come, in handfuls; returns when the server ends the stream. */
  async follow(since, onlines, signal) {
    const response = await this.ask("GET", `/v1/events?since=${since}`, undefined, { signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split(/\r?\n\r?\n/);
      rest = parts.pop();
      const lines = [];
      for (const part of parts) {
        let number, data = [];
        for (const row of part.split(/\r?\n/)) {
          if (row.startsWith("id:")) number = Number(row.slice(3));
          if (row.startsWith("data:")) data.push(row.slice(5).replace(/^ /, ""));
        }
        if (!data.length) continue;
        const line = JSON.parse(data.join("\n"));
        if (line.number === undefined && Number.isFinite(number)) line.number = number;
        lines.push(line);
      }
      if (lines.length) onlines(lines);
    }
  }
}

class SessionError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}
