/** What the API answers, as /openapi.json describes it. Written by `make frontend`: change the models of `app/routes`. */

export interface AddedSynonym {
  file: string;
  object: "synonym";
  other: string;
  phrase: string;
}

export interface AdminIndexBody {
  indexes: IndexBody[];
  model: string | null;
  object: "admin.index";
  parts: Record<string, PartState | null>;
  problems: ProblemBody[];
  sites: SitesBody;
  state: "ok" | "attention" | "broken";
  version: string;
}

export interface AnswerLink {
  object: "answer.link";
  token: string;
  until: number;
  url: string;
}

export interface ByEvidence {
  right: Share;
  times: number;
}

export interface Calibration {
  by: "verdicts" | "ratings" | "question_set";
  right: Share;
  said: "sure" | "doubted";
}

export interface ChatCompletionChunk {
  choices: ChunkChoice[];
  created: number;
  event?: Record<string, unknown>;
  extractive?: true;
  follow_ups?: string[];
  id: string;
  model: string;
  object: "chat.completion.chunk";
  refused?: true;
  sources?: Source[];
  trace?: Trace;
  unsupported?: Unsupported[];
  usage?: UsageObject | null;
  verbatim?: Verbatim;
}

export interface ChunkBody {
  id: string;
  language: string;
  link: string;
  position: number;
  questions: string[][];
  sections: Section[];
  start: number | null;
  text: string;
  translated_from: string;
}

export interface ChunkChoice {
  delta: Delta;
  finish_reason: "stop" | "length" | null;
  index: 0;
}

export interface Cluster {
  comments: string[];
  count: number;
  different: number;
  down: number;
  examples: Example[];
  failed: number;
  failed_before: number | null;
  first: string;
  languages: Record<string, number>;
  last: string;
  name: string;
  nearest: Nearest | null;
  refused: number;
  to_do: "write" | "extend" | "correct";
  unsupported: number;
  weak: number;
}

export interface CuratedList {
  assistants: string[];
  data: Version[];
  index: string;
  languages: string[];
  near: number;
  object: "list";
}

export interface DayFigures {
  answered: number;
  day: string;
  down: number;
  marked: number;
  questions: number;
  refused: number;
  tokens: number;
}

export interface DayList {
  data: DayFigures[];
  object: "list";
}

export interface Delta {
  content?: string;
  role?: "assistant";
}

export interface Dropped {
  detail: string;
  reason: "filters" | "version" | "translation" | "language" | "per_page" | "top_k" | "rerank" | "weak" | "evidence" | "overview" | "step" | "duplicate" | "passage_budget";
  step: string;
}

export interface EndedRunBody {
  began_at: string;
  by: string;
  counts: Record<string, number>;
  errors: string[];
  failed_sources: string[];
  generation: number | null;
  id: string;
  result: string;
  seconds: number;
  trigger: string;
}

export interface Entry {
  answer: string;
  language: string;
  page: string;
  questions: string[];
}

export interface ErrorList {
  data: RecentProblem[];
  object: "list";
}

export interface EvaluationBody {
  assistant: string;
  generation: number | null;
  kind: string;
  measured_at: string;
  model: string;
  question_set: string;
  questions: number;
  rows: EvaluationRow[];
}

export interface EvaluationRow {
  language: string;
  measures: Record<string, Measured>;
  n: number;
}

export interface Example {
  count: number;
  language: string;
  text: string;
}

export interface Facets {
  collections: string[];
  languages: string[];
}

export interface Failure {
  at: string;
  error: string;
}

export interface FeedbackList {
  data: GivenFeedback[];
  first_id: string | null;
  has_more: boolean;
  last_id: string | null;
  object: "list";
}

export interface GapReport {
  answers: number;
  assistant: string;
  chit_chat: number;
  clustered: number;
  clusters: Cluster[];
  failed_different: number;
  index_problem: string;
  log: string;
  log_from: string;
  object: string;
  pages: number;
  retention_days: number;
  since: string;
  smaller: number;
  synonyms: SynonymProposal[];
  totals: Totals;
  until: string;
  untranslated: Untranslated[];
  unused: UnusedPage[];
  unused_count: number | null;
  weak_times: number;
}

export interface GenerationBody {
  age_s: number | null;
  built_at: string;
  chunks: number;
  id: number;
  languages: string[];
  live: boolean;
  pages: number;
  recipe: Recipe;
  sources: SourceBody[];
}

export interface GenerationList {
  data: GenerationBody[];
  index: string;
  object: "list";
}

export interface GivenFeedback {
  answer: string;
  assistant: string;
  comment: string;
  created_at: number;
  generation: number | null;
  language: string;
  object: "feedback";
  outcome: string;
  question: string;
  rating: string;
  sources: Source[];
  text: string;
}

export interface Highlights {
  breadcrumbs: Piece[][];
  excerpt: Piece[];
}

export interface IndexBody {
  embedder: string;
  generation: GenerationBody | null;
  name: string;
  ok: boolean;
  pages_by_collection: Record<string, number>;
  pages_by_language: Record<string, number>;
  pages_by_source: Record<string, number>;
  pages_by_state: Record<string, number>;
  runs: RunHistoryBody;
}

export interface IngestRun {
  by: string;
  counts: Record<string, number> | null;
  done: number | null;
  error: string;
  exit_code: number | null;
  finished_at: string | null;
  id: string;
  object: "ingest.run";
  progress: string;
  queued_at: string;
  report?: Record<string, unknown> | null;
  sites: string[];
  stage: string;
  started_at: string | null;
  state: "queued" | "running" | "done" | "failed";
  total: number | null;
}

export interface IngestRunList {
  data: IngestRun[];
  object: "list";
}

export interface InterfaceAssistant {
  collections: string[];
  description: Record<string, string>;
  id: string;
  name: Record<string, string>;
  pages: Record<string, Record<string, string>>;
  personas: InterfacePersona[];
  suggestions: Record<string, string[]>;
}

export interface InterfaceBody {
  assistants?: InterfaceAssistant[];
  contact?: string;
  default_language?: string;
  index?: InterfaceIndex | null;
  keeps?: Keeps;
  key_required: boolean;
  languages?: string[];
  model?: boolean;
  page_language?: string;
  person: string;
  preparing?: boolean;
  reading?: Record<string, string>;
  sign_in: boolean;
  title: string;
  version: string;
  welcome: string;
}

export interface InterfaceIndex {
  built_at: string;
  generation: number;
  pages: number;
}

export interface InterfacePersona {
  id: string;
  name: Record<string, string>;
}

export interface Keeps {
  days: number;
  feedback: boolean;
  share_days: number;
}

export interface KeyBody {
  assistants: string[];
  collections: string[];
  concurrency: number;
  expires: string | null;
  made: string | null;
  name: string;
  note: string;
  origins: string[];
  rate: string;
  role: "reader" | "widget" | "admin";
  version: string;
}

export interface KeyList {
  data: KeyBody[];
  file: string;
  key: string;
  object: "list";
}

export interface LegPlace {
  chunk: string;
  rank: number;
  score: number;
}

export interface Link {
  chunk: string;
  number: number | null;
  passage: number | null;
  reason: string;
  score: number;
  section: string;
  url: string;
}

export interface LogList {
  assistants: string[];
  data: LoggedBody[];
  keys: string[];
  languages: string[];
  log: "text" | "hashed" | "off";
  next: string | null;
  object: "list";
  retention_days: number;
}

export interface LoggedBody {
  asked_at: string;
  assistant: string;
  comments: string[];
  count: number;
  down: number;
  id: string;
  key: string;
  language: string;
  nearest: string;
  number: number;
  outcome: string;
  pages: string[];
  question: string;
  rating: "up" | "down" | "";
  tokens: number;
}

export interface LoggedConversation {
  object: "logged_question";
  question: LoggedBody;
  turns: LoggedTurn[];
  verdict: VerdictBody | null;
}

export interface LoggedTurn {
  answer: string;
  id: string;
  language: string;
  outcome: string;
  question: string;
}

export interface Measured {
  high: number;
  low: number;
  mean: number;
}

export interface Message {
  content: string;
  role: string;
}

export interface Nearest {
  clear: boolean;
  language: string;
  section: string;
  share: number;
  title: string;
  url: string;
}

export interface Neighbour {
  begins: string;
  collection: string;
  cosine: number;
  id: string;
  language: string;
  near_duplicate: boolean;
  overlap: number;
  path: string[];
  title: string;
  url: string;
}

export interface NeighbourList {
  chunk: string;
  data: Neighbour[];
  generation: number;
  index: string;
  object: "list";
}

export interface OneChunkBody {
  chunk: ChunkBody;
  chunks_of_page: string[];
  embedded_text: string;
  generation: number;
  index: string;
  object: "chunk";
  page: PageRow;
  tokens: string[];
}

export interface OutcomeRow {
  count: number;
  failed: number;
  language: string;
  outcome: string;
}

export interface OutcomesOfDay {
  day: string;
  outcomes: Record<string, number>;
}

export interface PageBody {
  chunks: ChunkBody[];
  generation: number;
  index: string;
  markdown: string;
  object: "page";
  page: PageRow;
  record: Record<string, unknown>;
}

export interface PageList {
  counts: Record<string, Record<string, number>>;
  data: PageRow[];
  generation: number;
  index: string;
  next: string | null;
  object: "list";
  pages: number;
  total: number;
}

export interface PageRow {
  age: "week" | "month" | "quarter" | "year" | "older" | "unknown";
  chunks: number;
  collection: string;
  language: string;
  last_ok: string;
  modified: string;
  published: string;
  source: string;
  stale_since: string;
  state: "ok" | "failing" | "duplicate" | "empty";
  status: number;
  title: string;
  url: string;
}

export interface PartState {
  failing_since: string | null;
  failures: number;
  last_failure: Failure | null;
  last_probe_failure: Failure | null;
  last_success: string | null;
  latency_ms: number | null;
  name: string;
  others: PartState[];
  state: "ok" | "failing" | "unknown";
  waiting_s: number | null;
}

export interface Passage {
  breadcrumbs: string[];
  collection: string;
  headings: string[];
  highlights: Highlights;
  id: string;
  language: string;
  modified: string;
  number: number;
  object: "passage";
  published: string;
  score: number;
  scores: Scores;
  section: string;
  text: string;
  title: string;
  translated_from: string;
  url: string;
  versions: string[];
}

export interface PassageInPage {
  after: string;
  before: string;
  collection: string;
  headings: string[];
  id: string;
  language: string;
  modified: string;
  object: "passage";
  published: string;
  text: string;
  title: string;
  url: string;
}

export interface Piece {
  match: boolean;
  text: string;
}

export interface ProblemBody {
  code: string;
  index: string | null;
  message: string;
  severity: "error" | "warning" | "info";
  to_do: string;
}

export interface PromptList {
  data: PromptObject[];
  object: "list";
}

export interface PromptObject {
  changed: boolean;
  file: string;
  object: "prompt";
  text: string;
}

export interface QualityBody {
  calibration: Calibration[];
  days: OutcomesOfDay[];
  evidence: ByEvidence[];
  object: "quality";
  runs: EvaluationBody[];
}

export interface QuestionObject {
  file: string;
  object: "question";
  row: Record<string, unknown>;
}

export interface ReadingRun {
  began_at: string;
  done: number;
  minutes: number;
  total: number;
  trigger: string;
}

export interface RecentProblem {
  count: number;
  exception: string;
  first_at: string;
  last_at: string;
  level: string;
  logger: string;
  message: string;
  request_id: string;
}

export interface Recipe {
  analyzer: string;
  dimension: number;
  embedder: string;
  questions: string;
  splitter: string;
  summaries: string;
}

export interface Removal {
  kind: "address" | "image" | "html" | "citation" | "source list" | "table cell" | "markup" | "answer";
  reason: string;
  text: string;
}

export interface Reworded {
  after: string;
  after_id: string;
  before: string;
  before_id: string;
}

export interface RollbackBody {
  dropped: number;
  index: string;
  live: GenerationBody;
  object: "rollback";
}

export interface RunHistoryBody {
  counts: Record<string, number>;
  ended: Record<string, string>;
  last: string;
  seconds: number;
}

export interface RunList {
  current: IngestRun | null;
  data: EndedRunBody[];
  index: string;
  object: "list";
  reading: ReadingRun | null;
}

export interface Scores {
  fused: number;
  lexical: number | null;
  rerank: number | null;
  vector: number | null;
}

export interface SearchResult {
  data: Passage[];
  facets: Facets;
  generation: number;
  language: string;
  model: string;
  object: "list";
  query: string;
}

export interface Section {
  anchor: string;
  offset: number;
  path: string[];
}

export interface SettingBody {
  default: unknown;
  description: string;
  from: string;
  key: string;
  name: string;
  value: unknown;
}

export interface SettingList {
  data: SettingBody[];
  object: "list";
}

export interface Share {
  count: number;
  high: number | null;
  low: number | null;
  of: number;
  share: number | null;
}

export interface SharedAnswer {
  answer: string;
  assistant: string;
  created_at: number;
  language: string;
  object: "answer.shared";
  question: string;
  sources: Source[];
  unsupported: Unsupported[];
  until: number;
  verbatim: Verbatim | null;
}

export interface SiteBody {
  added_at: string;
  added_by: string;
  errors: string[];
  failing: number;
  options: Record<string, unknown>;
  origin: "settings" | "file" | "added" | "index";
  pages: number | null;
  paused_at: string;
  paused_by: string;
  place: string;
  read_at: string;
  unreadable: string;
  url: string;
}

export interface SiteList {
  data: SiteBody[];
  object: "list";
}

export interface SitePreview {
  left_out: Record<string, string>[];
  notes: string[];
  object: "site.preview";
  pages: string[];
}

export interface SiteRemoved {
  object: "site.removed";
  run: IngestRun | null;
  url: string;
}

export interface SitesBody {
  configured: string[];
  indexed: string[];
}

export interface Source {
  chunk: string;
  language: string;
  number: number;
  score: number;
  section: string;
  sentence: string;
  snippet: string;
  title: string;
  translated_from: string;
  url: string;
}

export interface SourceBody {
  collection: string;
  demo: boolean;
  options: Record<string, unknown>;
  roots: string[];
  unreadable: string;
  url: string;
}

export interface SynonymProposal {
  count: number;
  examples: Reworded[];
  other: string;
  phrase: string;
}

export interface Totals {
  different: number;
  down: number;
  failed: number;
  failed_before: number | null;
  outcomes: OutcomeRow[];
  questions: number;
  questions_before: number | null;
  refused: number;
  unsupported: number;
  weak: number;
}

export interface Trace {
  candidates: TraceCandidate[];
  end: TraceEnd;
  evidence: TraceEvidence | null;
  first_text: number | null;
  fusion: TraceFusion | null;
  generation: number | null;
  language: string;
  links: Link[];
  ms: number;
  passages: TracePassage[];
  problem: string;
  question: string;
  removed: Removal[];
  searches: TraceSearch[];
  steps: TraceStep[];
}

export interface TraceCall {
  completion_tokens: number;
  end: number;
  error: string;
  first_text: number | null;
  kind: "chat" | "embedding" | "rerank";
  max_tokens: number | null;
  messages: Message[];
  model: string;
  prompt_tokens: number;
  reply: string;
  start: number;
  temperature: number | null;
  texts: string[];
}

export interface TraceCandidate {
  boost: number;
  chunk: string;
  dropped: Dropped | null;
  found_by: string[];
  found_in: string;
  fused: number | null;
  language: string;
  language_factor: number;
  passage: number | null;
  place: number | null;
  rerank: number | null;
  section: string;
  title: string;
  url: string;
  vectors: LegPlace | null;
  vectors_share: number;
  words: LegPlace | null;
  words_share: number;
}

export interface TraceEnd {
  ending: string;
  extractive: boolean;
  failure: string;
  finish_reason: string;
  language: string;
  refused: boolean;
  unsupported: Unsupported[];
  verbatim: Verbatim | null;
}

export interface TraceEvidence {
  enough: boolean;
  found: number;
  needed: number;
}

export interface TraceFusion {
  depth: number;
  filters: Record<string, string[]>;
  fusion: string;
  language_offsets: Record<string, number>;
  other_language: number;
  per_page: number;
  top_k: number;
  vector_weight: number;
  vector_weight_used: number;
  words_weight: number;
  words_weight_used: number;
}

export interface TracePassage {
  chunks: string[];
  language: string;
  number: number;
  text: string;
  title: string;
  url: string;
}

export interface TraceSearch {
  end: number;
  start: number;
  step: string;
  texts: Record<string, unknown>[];
  vector: boolean;
  vectors: LegPlace[];
  words: LegPlace[];
}

export interface TraceStep {
  calls: TraceCall[];
  end: number;
  error: string;
  group: number;
  input: Record<string, unknown>;
  output: Record<string, unknown>;
  start: number;
  step: string;
}

export interface Tried {
  cosine: number;
  entry: number;
  id: string;
  like: boolean;
  other_words: string[];
  outcome: string;
  question: string;
}

export interface TriedList {
  data: Tried[];
  object: "curated.try";
  tried: number;
}

export interface Unsupported {
  kind: "number" | "name" | "code" | "statement";
  passage: number;
  score: number;
  text: string;
}

export interface Untranslated {
  count: number;
  language: string;
  page_language: string;
  title: string;
  url: string;
}

export interface UnusedPage {
  language: string;
  title: string;
  url: string;
}

export interface UsageObject {
  completion_tokens: number;
  prompt_tokens: number;
  total_tokens: number;
}

export interface Verbatim {
  found: number;
  statements: number;
}

export interface VerdictBody {
  answer: string;
  answerable: boolean;
  asked_at: string;
  assistant: string;
  by: string;
  given_at: string;
  id: string;
  language: string;
  outcome: string;
  pages: string[];
  question: string;
  reason: string;
  right_pages: string[];
  verdict: "good" | "wrong";
  wrong_pages: string[];
}

export interface VerdictList {
  data: VerdictBody[];
  object: "list";
}

export interface Version {
  at: string;
  by: string;
  entries: Entry[];
  version: number;
}

export interface ViewBody {
  path: string;
  script: string;
  titles: Record<string, string>;
}

export interface ViewList {
  data: ViewBody[];
  object: "list";
}
