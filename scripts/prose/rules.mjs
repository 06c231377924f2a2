// How texts are written: American technical English, as in the documentation of Stripe, Cloudflare
// or SQLite. Each rule is a pattern and what to write instead. A rule that is right in one place and
// wrong in another names the exceptions in its pattern.

/** `text` has spans of code replaced by `x`. */
export const RULES = [
  // Words that this project used in a sense of its own.
  rule(/\banew\b/i, "again"),
  rule(/\b(?:stands|stood|standing|stand)\b(?!-| alone| out\b)/i, "is, appears, is stored, represents"),
  rule(/\bholds?\b|\bheld\b/i, "contains, stores, applies, is true"),
  rule(/\bkept\b/i, "stored, retained, preserved"),
  rule(
    /(?<!\b(?:you|they|who|he|she|we|user|users|person|people|customer|speaker|somebody|someone|nobody) )\b(?:says|tells)\b/i,
    "shows, specifies, returns, lists, defines",
  ),
  rule(/\b(?:is|are|was|were|be|been|being|not) told\b/i, "is notified, receives"),
  rule(/\b(?:is|are|was|were|be|been|being) (?:not )?asked\b/i, "is called, receives the request"),
  rule(
    /\b(?:a|an|each|every|the|last|next|first|later|its|this|that|one|another|of) looks?\b(?! (?:at|up|for))/i,
    "learning pass, check",
  ),
  rule(/\blook(?:s|ed|ing)? (?:at|after|into)\b/i, "read, check, scan, see"),
  rule(/(?<!\bnext )\bdoors?\b/i, "entry point"),
  rule(/(?<!\b(?:opera |in-))\bhouses?\b/i, "the word for what is meant"),
  rule(/\bdistricts?\b/i, "crate, folder, area"),
  rule(/\bborne out\b|\bbears? (?:it |them )?out\b/i, "supported"),
  rule(/\bcosts? its own\b/i, "If X fails, only Y is affected"),
  rule(/\bstrangers?\b/i, "untrusted input"),
  rule(/\bheard\b/i, "received"),
  rule(/\bmeanwhile\b/i, "since, in the meantime, during the call"),
  rule(/\b(?:is|are|was|were) gone\b/i, "was deleted, no longer exists"),
  rule(/\b(?:go|goes|going|went|gone) on\b(?! to)/i, "continue, resume"),
  rule(/\b(?:take|takes|taken|taking|took) (?:it |them |that )?back\b/i, "revert, withdraw"),
  rule(/\b(?:take|takes|taken|carry|carries) along\b/i, "include, copy"),
  rule(/\b(?:lie|lies|lay) (?:in|at|below|above|beside|behind|under)\b/i, "is"),
  rule(/\bbeside\b/i, "next to"),
  rule(/\bin place of\b/i, "instead of"),
  rule(/\bof (?:yours|ours|theirs)\b/i, "your own, our own"),
  rule(/(?<!\bnot )\balone\b/i, "only, by itself"),
  rule(/\bso many\b/i, "the number itself"),
  rule(
    /\b(?:provider|model|agent|object|worker|server|page|socket)s? (?:wants?|hears?|believes?|minds?)\b/i,
    "needs, receives",
  ),
  // Constructions.
  rule(
    /(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|different\b|better\b|worse\b|less\b|fewer\b|later\b|way\b)\w/i,
    "is not a, does not",
  ),
  rule(/\b(?:has|have|had) to be\b/i, "must be"),
  rule(/(?:^|[.:;!?] )Of (?:a|an|the|what|each|every|these|those|all|its|one) /, "start with the subject"),
  rule(/(?:^|[.:;!?] )Who (?:wants|writes|sends|reads|has|needs|asks|may|changes|knows)\b(?!.*\?)/, "If you …"),
  rule(/\btakes? (?:those|that|the ones?) of\b/i, "accepts, supports"),
  rule(/\b(?:is|are|was|were|be|been|being|can't be) said (?:to|here|by|over)\b/i, "is sent, is written, is expressed"),
  rule(/\b(?:gave|give|gives|given) (?:no|neither|nothing)\b/i, "returned no, did not respond"),
  rule(/\bnobody's\b/i, "belongs to nobody, has no owner"),
  rule(/\b(?:has|have|had) no place for\b/i, "can't contain, doesn't support"),
  rule(/\b(?:its|the|their) reasons? (?:is|are) above\b/i, "see the reason above"),
  rule(/\bof one's own\b/i, "your own X"),
  rule(/\bshall\b|\bthereof\b|\btherein\b|\bhitherto\b|\bwhereby\b|\bhereby\b|\bwherein\b/i, "plain words"),
  rule(/\bwhatever (?:dies|happens|comes)\b/i, "even if X fails"),
  rule(/\bto the letter\b/i, "exactly"),
  // American spelling.
  rule(/\blearnt\b|\bspelt\b|\bmisspelt\b|\bburnt\b/i, "learned, spelled"),
  rule(
    /\b(?:label|cancel|travel|model|signal|total|channel|level|initial)(?:led|ling|ler)\b/i,
    "one l: labeled, canceled, modeling",
  ),
  rule(/\b(?:colour|behaviour|neighbour|favour|harbour|honour|flavour|rumour)(?:s|ed|ing|ite|ites|hood)?\b/i, "-or"),
  rule(
    /\b(?:anonym|author|capital|categor|central|custom|emphas|final|general|initial|local|material|maxim|minim|normal|optim|organ|parallel|priorit|random|real|recogn|serial|special|stabil|standard|summar|synchron|token|util|visual)is(?:e[sd]?|ing|ation|ations|er|ers)\b/i,
    "-ize",
  ),
  rule(
    /\b(?:centre|licence|catalogue|artefact|grey|judgement|whilst|amongst|towards|afterwards|backwards|fulfil|enrol|instal|programme|cheque|tyre|analyse[sd]?|ageing)s?\b/i,
    "American spelling",
  ),
  // Terms, each with one spelling.
  rule(
    /\b(?:Websocket|web socket|Web socket|Javascript|Typescript|Github|OpenAi|Openai|Langgraph|Opentelemetry|Sqlite|Wrangler\.toml|Openapi|Cloudflare workers?|durable objects?|Durable objects?|Workers ai|NPM|NodeJS|Node\.js|Json|ndjson)\b/,
    "WebSocket, JavaScript, TypeScript, GitHub, OpenAI, LangGraph, SQLite, OpenAPI, Durable Object, Workers AI, npm, Node, JSON",
  ),
  rule(
    /\b(?:time-stamp|data base|file name|meta data|front-matter|end point|back end|change log)s?\b(?!-)/i,
    "one spelling: timestamp, database, filename, metadata, endpoint, backend",
  ),
  rule(/\be-mails?\b/i, "email"),
  rule(/\b(?:e\.g\.|i\.e\.|etc\.|viz\.|resp\.|cf\.)/i, "for example, that is"),
];

function rule(pattern, instead) {
  return { pattern, instead };
}

/** The findings of the rules in a text: `{ found, instead }` of each. */
export function findingsIn(text) {
  return RULES.flatMap(({ pattern, instead }) => {
    const found = text.match(pattern);
    return found === null ? [] : [{ found: found[0].trim(), instead }];
  });
}
