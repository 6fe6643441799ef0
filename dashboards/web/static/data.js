// Data of the server: loaded once, then only what changed.

export class Refused extends Error {}

export async function ask(address, options = {}) {
  const answer = await fetch(address, { credentials: "same-origin", ...options });
  const text = await answer.text();
  let found = { problem: text.startsWith("deltaspace: ") ? text : `the server answers with ${answer.status} and no data.` };
  let isData = answer.ok;
  try {
    found = JSON.parse(text);
  } catch {
    isData = false; // a refusal, or a page of a proxy
  }
  if (!isData) throw new Refused(found.problem ?? `the server answers with ${answer.status}.`);
  return found;
}

/** All trials of a study, kept up to date. */
export class Trials {
  constructor(api, isLive) {
    this.api = api;
    this.isLive = isLive;
    this.rows = [];
    this.study = null;
    this.ranking = null;
    this.places = new Map();
    this.estimates = new Map();
    this.annotations = new Map();
    this.session = "";
    this.version = 0;
    this.ranked = 0;
    this.said = 0;
  }

  async update() {
    const known = this.isLive ? `?session=${this.session}&since=${this.version}&ranked=${this.ranked}&said=${this.said}` : "";
    const found = await ask(`${this.api}trials.json${known}`);
    if (found.session !== this.session) this.rows = [];
    this.session = found.session;
    this.version = found.trials.version;
    this.ranked = found.ranked;
    this.said = found.said;
    if (found.annotations) this.annotations = new Map(found.annotations.map((one) => [one.trial, one]));
    this.study = found.study;
    const { columns, rows } = found.trials;
    for (const row of rows) {
      const trial = Object.fromEntries(columns.map((name, place) => [name, row[place]]));
      this.rows[trial.number] = trial;
    }
    if (found.ranking) {
      this.ranking = found.ranking;
      this.places = new Map(found.ranking.order.map((number, place) => [number, place + 1]));
      this.estimates = new Map(found.ranking.estimates.map(([number, mean, reach]) => [number, { mean, reach }]));
    }
    this.#takeMeans();
    return rows.length > 0 || Boolean(found.ranking);
  }

  /** The score of a trial that was trained again is the mean of its trainings, wherever it is shown. */
  #takeMeans() {
    for (const [number, again] of Object.entries(this.ranking?.repeated ?? {})) {
      if (this.rows[number]) Object.assign(this.rows[number], again);
    }
  }

  get best() {
    const number = this.ranking?.order.find((one) => this.rows[one]?.state === "complete");
    return number === undefined ? null : this.rows[number];
  }
}

const SECONDS = 1;

/** Calls a function whenever there is news of a study, as long as somebody looks at the page. */
export function follow(api, tell, say) {
  let known = "";
  const look = async () => {
    if (document.hidden) return;
    try {
      const news = JSON.stringify(await ask(`${api}news.json`));
      say("live", "");
      if (news !== known) tell();
      known = news;
    } catch (error) {
      if (error instanceof Refused) say("unreadable", error.message);
      else say("waiting", "no response from the server; trying again");
    }
  };
  const again = async () => {
    await look();
    setTimeout(again, 1000 * SECONDS);
  };
  document.addEventListener("visibilitychange", look);
  again();
}
