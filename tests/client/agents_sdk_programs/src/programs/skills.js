// memory-docs, "Custom skill providers": block 15, as printed.

export class DatabaseSkillProvider {
  db;
  constructor(db) {
    this.db = db;
  }
  async get() {
    const rows = await this.db.prepare("SELECT key, description FROM skills ORDER BY key").all();
    if (rows.results.length === 0) return null;
    return rows.results.map((r) => `- ${r.key}${r.description ? `: ${r.description}` : ""}`).join("\n");
  }
  async load(key) {
    const row = await this.db.prepare("SELECT content FROM skills WHERE key = ?").bind(key).first();
    return row ? row.content : null;
  }
  async set(key, content, description) {
    await this.db
      .prepare(
        "INSERT INTO skills (key, content, description) VALUES (?, ?, ?) " +
          "ON CONFLICT(key) DO UPDATE SET content = ?, description = ?",
      )
      .bind(key, content, description ?? null, content, description ?? null)
      .run();
  }
}
