// Checks ARCHITECTURE.md against the sources: its map, the direction of calls, and the invariants
// that can be checked in the code.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DISTRICTS } from "../../scripts/paths.mjs";
import { findLoops, importsOf, readSources } from "./imports.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const architecture = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");

const sources = [
  ...readSources(join(ROOT, "src")),
  ...DISTRICTS.flatMap((name) => readSources(join(ROOT, "crates", name, "src"), name)),
].map((source) => ({ ...source, district: source.module.split("::")[0] }));

/** Whether a file exists that the pages name as `base/error.rs`, or by its full path. */
function isThere(name) {
  const [district, ...rest] = name.split("/");
  const places = [name, join("src", name), join("crates", district, "src", ...rest)];
  return places.some((place) => existsSync(join(ROOT, place)));
}

function filesMatching(pattern, except = /^$/) {
  return sources.filter(({ file, code }) => !except.test(file) && pattern.test(code)).map(({ file }) => file);
}

test("the_sources_are_found", () => {
  assert.ok(sources.length > 100);
  assert.deepEqual(
    sources.filter(({ module }) => /(^|::)(testing|tests)(::|$)/.test(module)),
    [],
  );
  assert.ok(filesMatching(/\bworker::/).length > 0);
});

// The compiler refuses a crate that is not named, and clippy.toml the reader of serde_json.
test("only_the_edge_depends_on_the_runtime", () => {
  const runtime = /\b(worker|worker-sys|web-sys|js-sys|wasm-bindgen)\b/;
  const dependsOnIt = (folder) => runtime.test(readFileSync(join(ROOT, folder, "Cargo.toml"), "utf8"));
  assert.ok(dependsOnIt("."));
  assert.deepEqual(
    DISTRICTS.filter((name) => dependsOnIt(join("crates", name))),
    [],
  );
});

// serde_json's `Value` brings its reader along.
test("json_trees_are_decoded_by_decode_tree_only", () => {
  assert.ok(filesMatching(/\bdecode_tree\(/).length > 5);
  assert.deepEqual(
    filesMatching(/\bdecode(_bytes)?::<Value>|\b(let|fn) \w+(\(.*\))?: (Vec<)?Value>? = json::decode\(/),
    [],
  );
});

test("only_the_schema_creates_and_drops_tables", () => {
  const pattern = /\b(CREATE|DROP|ALTER)\s+((UNIQUE|VIRTUAL|TEMP)\s+)?(TABLE|INDEX|TRIGGER|VIEW)\b/;
  assert.deepEqual(filesMatching(pattern).sort(), [
    "store/schema/free_space.rs",
    "store/schema/mod.rs",
    "store/schema/zeros.rs",
  ]);
});

test("settings_are_named_in_one_file", () => {
  const [, list] = sources.find(({ file }) => file === "base/settings.rs").code.split("\nsettings! {\n");
  const names = [...list.matchAll(/ = "([A-Z_]+)": /g)].map(([, name]) => name);
  assert.ok(names.length > 5);
  assert.deepEqual(filesMatching(new RegExp(`"(${names.join("|")})"`)), ["base/settings.rs"]);
});

test("each_setting_is_read", () => {
  const [, list] = sources.find(({ file }) => file === "base/settings.rs").code.split("\nsettings! {\n");
  const variants = [...list.matchAll(/^ +(\w+) = "[A-Z_]+": /gm)].map(([, name]) => name);
  assert.ok(variants.length > 5);
  // Tokens of an issuer are checked before Rust, by code that reads the rest of their settings.
  const inFront = readFileSync(join(ROOT, "packages/session-agent/src/worker/oauth.ts"), "utf8");
  const unread = variants.filter(
    (name) =>
      filesMatching(new RegExp(`\\bSetting::${name}\\b`), /^base\/settings\.rs$/).length === 0 &&
      !(name === "OAuthAgents" && inFront.includes('"OAUTH_AGENTS"')),
  );
  assert.deepEqual(unread, [], "no code reads these settings of base/settings.rs");
});

// Because each `match` names every variant, the compiler reports every place that a new backend or
// provider affects.
test("backends_and_providers_are_matched_exhaustively", () => {
  assert.ok(filesMatching(/\bBlockBackend::Agent\b/).length > 4);
  assert.ok(filesMatching(/\bProvider::Anthropic\b/).length > 3);
  assert.deepEqual(
    filesMatching(
      /\blet\s+(Some\()?(BlockBackend|Provider)::|[=!]= (BlockBackend|Provider)::|\bmatches!\([^;]*\b(BlockBackend|Provider)::/,
    ),
    [],
  );
});

// `row!` (base/columns.rs) pairs each column with its field. Only lower-level code uses column
// numbers.
const BELOW_ROWS = /^base\/(columns|database)\.rs$/;
const BY_NUMBER = new RegExp(
  [
    String.raw`\bimpl(<[^>]*>)? (\w+::)*From(Row|Column)<`,
    String.raw`\.(integer|text|number|find_integer|find_text)\((\d+|\w*column\w*|[^()]*\bWIDTH\b[^()]*)\)`,
    String.raw`\b\w*rows?(\[\d+\])?\s*\.(integer|text|number|find_integer|find_text)\(`,
    String.raw`\b\w*row\.0\b`,
  ].join("|"),
);

test("the_search_for_column_numbers_finds_one", () => {
  const byNumber = [
    "impl FromRow<'_> for Note {",
    "impl<'r> base::columns::FromColumn<'r> for Note<'r> {",
    "seq: line.integer(3)?,",
    "let text = |column| line.find_text(column);",
    "line.text(PathEnd::WIDTH)?",
    "line.text(1 + PathEnd::WIDTH)?",
    "spent: row\n    .find_text(FOURTH)",
    "rows[0].number(at)",
    "first_row.0.get(1)",
  ];
  assert.deepEqual(
    byNumber.filter((code) => !BY_NUMBER.test(code)),
    [],
  );
  const others = [
    "T: for<'r> FromRow<'r>,",
    "writer.text(text)",
    "request.text(name)?",
    "let id: String = row.value()?;",
    "let (hash, text): (&str, &str) = row.read()?;",
  ];
  assert.deepEqual(
    others.filter((code) => BY_NUMBER.test(code)),
    [],
  );
});

test("no_reader_uses_a_column_number", () => {
  assert.ok(filesMatching(BY_NUMBER).some((file) => BELOW_ROWS.test(file)));
  assert.deepEqual(filesMatching(BY_NUMBER, BELOW_ROWS), []);
  assert.ok(filesMatching(/\brow! \{/).length > 45);
});

// These files name the tables of other crates: they list all tables, and define how a row is
// checked, searched, or found in an object of another class.
const READERS_OF_TABLES =
  /^store\/schema\/|^lifecycle\/(tables\.rs$|verify\/check\.rs$|mention_tables\.rs$|foreign\.rs$)/;

// The owner of each table and index that a statement names: the only crate that may name it, apart
// from those lists. The other crates call its functions.
const OWNERS = {
  cf_agents_block_versions: "memory",
  cf_agents_blocks: "memory",
  cf_agents_callbacks: "store",
  cf_agents_changes: "conversation",
  cf_agents_compactions: "conversation",
  cf_agents_config: "store",
  cf_agents_deleted_items: "memory",
  cf_agents_directory: "directory",
  cf_agents_early_answers: "chat",
  cf_agents_entries: "memory",
  cf_agents_entries_search: "memory",
  cf_agents_entries_search_docsize: "memory",
  cf_agents_entry_vectors: "memory",
  cf_agents_event_vectors: "conversation",
  cf_agents_events: "conversation",
  cf_agents_events_by_correction: "conversation",
  cf_agents_events_by_parent: "conversation",
  cf_agents_failed_turns: "conversation",
  cf_agents_imports: "lifecycle",
  cf_agents_item_counts: "memory",
  cf_agents_item_versions: "memory",
  cf_agents_last_turns: "conversation",
  cf_agents_loaded_skills: "memory",
  cf_agents_media: "conversation",
  cf_agents_media_uses: "conversation",
  cf_agents_metered: "conversation",
  cf_agents_migrations: "store",
  cf_agents_path_digests: "conversation",
  cf_agents_prompts: "memory",
  cf_agents_proposals: "memory",
  cf_agents_replacements: "memory",
  cf_agents_search: "conversation",
  cf_agents_search_data: "conversation",
  cf_agents_search_docsize: "conversation",
  cf_agents_search_parts: "conversation",
  cf_agents_search_progress: "conversation",
  cf_agents_search_words: "conversation",
  cf_agents_sessions: "conversation",
  cf_agents_sessions_by_retention: "conversation",
  cf_agents_skill_listings: "memory",
  cf_agents_skills: "memory",
  cf_agents_slices: "conversation",
  cf_agents_tool_authorizations: "chat",
  cf_agents_tools: "chat",
  cf_agents_usage_calls: "conversation",
  cf_agents_usage_days: "conversation",
  cf_agents_waiting: "conversation",
};

function namersOfTables() {
  const named = {};
  for (const { file, district, code } of sources) {
    if (READERS_OF_TABLES.test(file)) continue;
    const statements = code.replace(/\/\/.*/g, "");
    for (const [table] of statements.matchAll(/\bcf_agents_\w+/g)) {
      named[table] ??= new Set();
      named[table].add(district);
    }
  }
  return named;
}

test("a_table_is_named_only_by_its_owner", () => {
  const named = Object.entries(namersOfTables()).map(([table, crates]) => [table, [...crates].sort().join()]);
  assert.deepEqual(Object.fromEntries(named), OWNERS);
});

// A typed deletion names its table by this descriptor, which lists what a purge overwrites.
test("a_table_is_described_once_by_its_owner", () => {
  const described = sources.flatMap(({ file, code }) => {
    const names = code.matchAll(/\b(?:Table \{\s+name: |of_the_agent\(\s*|of_the_index\(\s*|view\()"(cf_agents_\w+)"/g);
    return [...names].map(([, table]) => [table, file]);
  });
  assert.ok(described.length > 30);
  assert.equal(new Map(described).size, described.length, "a table is described twice");
  const isElsewhere = ([table, file]) => file !== `${OWNERS[table]}/tables.rs`;
  assert.deepEqual(described.filter(isElsewhere), []);
});

// The owner's descriptions that another crate uses to delete rows.
test("a_crate_deletes_only_from_its_own_tables", () => {
  const foreign = sources.flatMap(({ file, district, code }) => {
    const used = [...code.matchAll(/^use (\w+)::tables::/gm)].map(([, crate]) => crate);
    const others = used.filter((crate) => !["base", "crate", district].includes(crate));
    return others.map((crate) => `${file}: ${crate}`);
  });
  const allowed = /^lifecycle\/|^api\/.*: lifecycle$/;
  assert.deepEqual(
    foreign.filter((use) => !allowed.test(use)),
    [],
  );
});

test("each_tables_insert_is_written_once", () => {
  const files = new Map();
  for (const { file, code } of sources) {
    for (const [, table] of code.matchAll(/INSERT (?:OR \w+ )?INTO (\w+)/g))
      files.set(table, [...(files.get(table) ?? []), file]);
  }
  assert.ok(files.size > 15);
  assert.deepEqual(
    [...files].filter(([, named]) => named.length > 1),
    [],
  );
});

// The meaning of a name is decided in the one file that contains it.
test("the_part_field_names_are_in_one_file", () => {
  const states = ["input-streaming", "input-available", "approval-requested", "approval-responded"];
  states.push("output-available", "output-error", "output-denied");
  const names = [...states, "tool-", "dynamic-tool", "step-start", "providerMetadata"];
  const { code } = sources.find(({ file }) => file === "base/part.rs");
  for (const name of names) {
    assert.ok(code.includes(`"${name}"`), name);
    const others = sources.filter((other) => other.code.includes(`"${name}"`)).map(({ file }) => file);
    assert.deepEqual(others, ["base/part.rs"], name);
  }
});

test("the_names_of_actions_and_roles_are_in_one_file", () => {
  const actions = /["'](user_message|agent_message|tool_call_request|tool_result|system_instruction)["']/;
  assert.deepEqual(filesMatching(actions), ["base/action.rs"]);
  // Providers have their own roles.
  assert.deepEqual(filesMatching(/["'](user|assistant)\\?["']/, /^(models|provider_api)\//), ["base/action.rs"]);
});

test("no_source_file_is_long", () => {
  const long = sources.filter(({ code }) => code.split("\n").length > 550).map(({ file }) => file);
  assert.deepEqual(long, []);
});

test("a_limit_that_rust_and_javascript_share_has_one_value", () => {
  const glue = readFileSync(join(ROOT, "src/edge/glue.js"), "utf8");
  const shared = [...glue.matchAll(/^\/\*\* As `(\w+)` of (\S+?)\. \*\/\nconst \1 = (\d+);$/gm)];
  assert.ok(shared.length >= 2);
  for (const [, name, file, value] of shared) {
    const { code } = sources.find((source) => source.file === file);
    const [, there] = code.match(new RegExp(`const ${name}: \\w+ = ([\\d_]+);`));
    assert.equal(there.replaceAll("_", ""), value, name);
  }
});

test("the_code_map_names_existing_folders", () => {
  const [map] = architecture.split("\n## The map\n")[1].split("\n## ");
  for (const folder of ["src", "crates"]) {
    const [, tree] = map.match(new RegExp(`^${folder}/\\n((?: {2}.*\\n)+)`, "m"));
    const named = [...tree.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name);
    const there = readdirSync(join(ROOT, folder)).map((name) => (name.includes(".") ? name : `${name}/`));
    assert.deepEqual(named.sort(), there.sort());
  }
  const others = [...map.matchAll(/^(\w\S*\/) /gm)].map(([, folder]) => folder);
  assert.ok(others.length >= 4);
  for (const folder of others) assert.ok(existsSync(join(ROOT, folder)), folder);
});

test("an_import_cycle_is_found_and_reported", () => {
  const folder = mkdtempSync(join(tmpdir(), "loops-"));
  const write = (file, text) => {
    mkdirSync(join(folder, file, ".."), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  write("lib.rs", "mod a;\nmod b;\n");
  write("a/mod.rs", "pub mod c;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n");
  write("a/c.rs", "use crate::{\n    b::{self, X},\n    a::d,\n};\n// use crate::e;\n");
  write("b.rs", "mod inner {\n    use super::X;\n}\n#[cfg(test)]\nuse crate::a::c;\n");
  const loops = () => findLoops(importsOf(readSources(folder)));
  assert.deepEqual(loops(), []);
  write("b.rs", "fn b() {\n    crate::a::c::run();\n}\n");
  assert.deepEqual(loops(), [["a::c", "b", "a::c"]]);
  write("b.rs", "use super::a::c::{X, Y};\n");
  assert.deepEqual(loops(), [["a::c", "b", "a::c"]]);
  rmSync(folder, { recursive: true });
});

test("no_files_import_each_other_in_a_cycle", () => {
  const imports = importsOf(sources);
  assert.ok([...imports.values()].flat().length > 500);
  const loops = findLoops(imports).map((loop) => loop.join(" → "));
  assert.deepEqual(loops, []);
});

/** How a Cargo.toml names another district: as the key, the table, the package or the folder. */
const NAMED =
  /^(?:session-agent-)?([\w-]+)(?:\.| =)|dependencies\.(?:session-agent-)?([\w-]+)\]|package = "session-agent-(\w+)"|path = "\.\.\/(\w+)"/gm;

// The compiler refuses a call to a crate that is not named, so the named crates are all.
test("each_crate_depends_only_on_those_to_its_right", () => {
  const chain = chainAfter("Calls go one way:");
  assert.deepEqual(chain.toSorted(), ["edge", ...DISTRICTS].sort(), "each district has its place in the chain");
  for (const [at, district] of chain.entries()) {
    const manifest = district === "edge" ? "Cargo.toml" : `crates/${district}/Cargo.toml`;
    const tables = readFileSync(join(ROOT, manifest), "utf8").split(/^\[/m);
    const named = tables
      .filter((table) => /^(target\..*\.)?((dev|build)-)?dependencies(\.\S+)?\]/.test(table))
      .flatMap((table) => [...table.matchAll(NAMED)].map(([, ...names]) => names.find(Boolean)))
      .filter((name) => DISTRICTS.includes(name) && name !== district);
    assert.ok(named.length > 0 || district === "base", district);
    assert.deepEqual(
      named.filter((name) => chain.indexOf(name) <= at),
      [],
      `${manifest} names a district that is not to its right`,
    );
  }
});

for (const crate of ["chat", "conversation"]) {
  test(`no_folder_of_${crate}_calls_a_later_one`, () => {
    const chain = chainAfter(`Within \`${crate}\`:`);
    const isFolder = (entry) => entry.isDirectory();
    const folders = readdirSync(join(ROOT, "crates", crate, "src"), { withFileTypes: true }).filter(isFolder);
    const named = folders.map(({ name }) => name).sort();
    assert.deepEqual(chain.toSorted(), named, "each folder has its place in the chain");
    const folderOf = (module) => (module.startsWith(`${crate}::`) ? module.split("::")[1] : undefined);
    assert.deepEqual(callsBack(chain, folderOf), []);
  });
}

/** The chain that ARCHITECTURE.md prints after these words. */
function chainAfter(words) {
  const text = architecture.slice(architecture.indexOf(words) + words.length);
  return text
    .match(/`([^`]+→[^`]+)`/)[1]
    .split("→")
    .map((name) => name.trim());
}

/** The imports that go up a chain. `placeOf`: the link of the chain that contains a module. */
function callsBack(chain, placeOf) {
  return [...importsOf(sources)].flatMap(([module, others]) => {
    const place = chain.indexOf(placeOf(module));
    const isAbove = (other) => chain.includes(placeOf(other)) && chain.indexOf(placeOf(other)) < place;
    return place < 0 ? [] : others.filter(isAbove).map((other) => `${module} → ${other}`);
  });
}

test("each_crate_documents_its_contents", () => {
  const silent = ["src/edge/mod.rs", ...DISTRICTS.map((name) => `crates/${name}/src/lib.rs`)].filter(
    (file) => !/^\/\/! .{20}/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  assert.deepEqual(silent, []);
});

test("each_test_named_by_a_promise_exists", () => {
  const [page] = architecture.split("\n## The crates\n")[1].split("\n## ");
  const named = [...page.matchAll(/[\w./-]+\.(?:rs|mjs)/g)].map(([name]) => name);
  assert.ok(named.length >= 40);
  const elsewhere = ["tests/workerd", "tests/console"];
  assert.deepEqual(
    named.filter((name) => !isThere(name) && !elsewhere.some((place) => existsSync(join(ROOT, place, name)))),
    [],
  );
  for (const name of ["edge", ...DISTRICTS]) {
    assert.match(page, new RegExp(`^### ${name}: `, "m"), "each district lists its promises");
  }
});

test("each_file_named_by_a_path_through_the_code_exists", () => {
  for (const heading of ["an append", "a chat turn", "a search"]) {
    const [path] = architecture.split(`\n## The life of ${heading}\n`)[1].split("\n## ");
    const named = [...path.matchAll(/`([\w/]+(?:\.rs|\/))`/g)].map(([, name]) => name);
    assert.ok(named.length >= 8, heading);
    assert.deepEqual(
      named.filter((name) => !isThere(name)),
      [],
    );
  }
});

test("each_name_and_file_in_the_page_exists", () => {
  const folders = ["src", "crates", "tests/native", "tests/workerd", "tests/scripts", "scripts", "bench", "generated"];
  const files = folders.flatMap((folder) => {
    const names = readdirSync(join(ROOT, folder), { recursive: true }).filter((name) =>
      /\.(rs|mjs|json|sql)$/.test(name),
    );
    return names.map((name) => join(folder, name));
  });
  const texts = [...files, "build.rs", "package.json", "wrangler.toml"].map((file) =>
    readFileSync(join(ROOT, file), "utf8"),
  );
  const words = new Set(texts.join("\n").match(/\w+/g));
  const names = [...architecture.matchAll(/`([A-Za-z_]\w*(?:::\w+)*)`/g)].map(([, name]) => name);
  assert.ok(names.length > 30);
  assert.deepEqual(
    names.filter((name) => name.split("::").some((word) => !words.has(word))),
    [],
  );

  const [steps] = architecture.split("\n## How to\n")[1].split("\n## ");
  const named = [...steps.matchAll(/`([\w./-]+(?:\.\w+|\/))`/g)].map(([, name]) => name);
  assert.ok(named.length > 30);
  assert.deepEqual(
    named.filter((name) => !isThere(name) && !existsSync(join(ROOT, "tests/workerd", name))),
    [],
  );
});

test("each_file_named_by_the_storage_page_exists", () => {
  const storage = readFileSync(join(ROOT, "docs/storage.md"), "utf8");
  const named = [...storage.matchAll(/`([\w/]+(?:\.rs|\/))`/g)].map(([, name]) => name);
  assert.ok(named.length >= 25);
  assert.deepEqual(
    named.filter((name) => !isThere(name)),
    [],
  );
});
