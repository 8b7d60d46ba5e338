'use strict'
// Texts of documents and of users come into the page as text nodes only.

const $ = id => document.getElementById(id)
const base = '_akin/playground/'

// el returns an element with properties, attributes among them, and children.
function el(tag, props, ...children) {
  const e = document.createElement(tag)
  for (const [name, value] of Object.entries(props || {})) {
    if (name in e && !name.startsWith('aria')) e[name] = value
    else e.setAttribute(name, value)
  }
  e.append(...children)
  return e
}

// call asks the admin port, with a body by POST. Its errors can be shown.
async function call(path, body) {
  let answer
  try {
    const url = new URL(path, location.origin + location.pathname) // without a password that stands in the page's own
    answer = await fetch(url, body === undefined ? {} : {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    })
  } catch {
    throw new Error('akin does not answer: is it still running?')
  }
  const text = await answer.text()
  let value
  try { value = JSON.parse(text) } catch { value = {} }
  if (!answer.ok) throw new Error(value.error?.reason || value.error || 'akin answers with status ' + answer.status)
  return value
}

const say = (id, text) => { $(id).textContent = text }
const show = (error) => say('error', error ? String(error.message || error) : '')
const count = (n, one, many = one + 's') => n + ' ' + (n === 1 ? one : many)
const figure = (x, digits = 3) => Number(x.toPrecision(digits)).toString()

// What is known of the search that is shown.
let setup = { indices: [], profiles: [], matrices: [], cluster: '' }
let shown = null // the last answer
let terms = new Map() // the added terms, by index term
let asked = null // its request, without adjustments
let query = '' // its words, '' if it has a body of its own
let turn = 0 // counts the searches: only the last one is shown

// ---- the search

function authorization() {
  const user = $('user').value, secret = $('secret').value
  if (!secret) return ''
  if (!user) return 'ApiKey ' + secret
  return 'Basic ' + btoa(String.fromCharCode(...new TextEncoder().encode(user + ':' + secret)))
}

const fieldsOf = () => $('fields').value.split(/[\s,]+/).filter(Boolean)

function ownBody() {
  try { return JSON.parse($('body').value) } catch (e) { throw new Error('The body is no JSON: ' + e.message) }
}

// bodyOf returns the search for words.
function bodyOf(words) {
  const match = { query: words }
  const known = setup.indices.find(i => i.name === $('index').value)
  const fields = fieldsOf().length ? fieldsOf() : known ? known.fields : []
  if (fields.length) match.fields = fields
  return { size: 10, query: { multi_match: match } }
}

// requestOf returns the request for a body with the settings of the page.
function requestOf(body) {
  const set = { index: $('index').value.trim(), profile: $('profile').value, effort: $('effort').value, matching: $('matching').value, body }
  return $('strength').value === '' ? set : { ...set, strength: Number($('strength').value) }
}

const factorsOf = added => [...added.values()].filter(t => t.factor !== 1).map(t => ({ term: t.term, factor: t.factor }))
const ask = (request, adjusted) => call(base + 'search', { ...request, adjusted, authorization: authorization() })

async function search(again) {
  const mine = ++turn
  clearTimeout(waiting)
  show('')
  say('done', '')
  busy(true)
  try {
    const own = $('body').value.trim() !== '', words = $('query').value.trim()
    if (!again && !own && !words) throw new Error('Type what to search for.')
    if (!again) keepAddress()
    const next = again ? asked : requestOf(own ? ownBody() : bodyOf(words))
    if (!next) return
    say('summary', 'Searching …')
    let found = await ask(next, again ? factorsOf(terms) : [])
    const added = again ? terms : termsOf(found.explanation)
    if (!again) {
      const banned = [...added.values()].filter(t => rules.get(pairOf(t.from, t.term))?.action === 'ban')
      for (const t of banned) t.factor = 0
      if (banned.length) found = await ask(next, factorsOf(added))
    }
    if (mine !== turn) return
    if (!again) query = own ? '' : words
    terms = added
    note(termsOf(found.explanation))
    shown = found
    asked = next
    if (query) keepRanks(query, found, next)
    render(!again)
    await highlight(mine)
    if (!again) await recent()
  } catch (e) {
    if (mine === turn) { say('summary', ''); show(e) }
  } finally {
    if (mine === turn) busy(false)
  }
}

// ---- the address

// What the address has behind #, which no server sees: names, and the elements
// with their values.
const inAddress = { index: 'index', q: 'query', fields: 'fields', profile: 'profile', effort: 'effort', matching: 'matching', strength: 'strength', body: 'body' }

function hashOf() {
  const values = Object.entries(inAddress).map(([name, id]) => [name, $(id).value.trim()])
  return '#' + new URLSearchParams(values.filter(([, value]) => value))
}

const keepAddress = () => history.replaceState(null, '', hashOf())

// follow takes the values of the address, and reports whether they are a search.
function follow() {
  const wanted = new URLSearchParams(location.hash.slice(1))
  for (const [name, id] of Object.entries(inAddress)) {
    const e = $(id), value = wanted.get(name) || (name === 'index' && setup.indices[0]?.name) || ''
    e.value = value
    if (e.value !== value) e.value = '' // which a list does not have
  }
  if ($('body').value) $('json').open = true
  fieldNames()
  renderJudgments()
  return wanted.has('q') || wanted.has('body')
}

function fieldNames() {
  $('fieldnames').replaceChildren(...(setup.indices.find(i => i.name === $('index').value)?.fields || []).map(f => el('option', { value: f })))
}

const busy = is => document.querySelector('main').setAttribute('aria-busy', String(is))

const clausesOf = explanation => explanation?.clauses || []

// termsOf returns the added terms of an explanation, each once.
function termsOf(explanation) {
  const all = new Map(), origins = []
  const add = (a, from, field, fromWord) => {
    const t = all.get(a.term) || { term: a.term, word: a.word || a.term, from, fromWord, fields: [], similarity: a.similarity, fit: a.fit, idf: a.idf, boost: 0, factor: 1 }
    if (!origins.includes(t.from)) origins.push(t.from)
    t.tone = origins.indexOf(t.from) % 6
    t.fields.push(field)
    if (Math.abs(a.boost) > Math.abs(t.boost)) t.boost = a.boost
    all.set(a.term, t)
  }
  for (const c of clausesOf(explanation)) {
    for (const a of c.added || []) add(a, a.from, c.field, c.words?.[a.from] || a.from)
    for (const f of c.feedback || []) add(f, '', c.field, '')
  }
  return all
}

// note takes the boosts of a search that was adjusted.
function note(now) {
  for (const t of terms.values()) t.boost = now.get(t.term)?.boost ?? 0
}

const hitsOf = found => found.answer?.hits?.hits || []

function totalOf(found) {
  const total = found.answer?.hits?.total
  if (total === undefined) return hitsOf(found).length
  return typeof total === 'number' ? total : (total.relation === 'gte' ? 'at least ' : '') + total.value
}

function problemOf(found) {
  if (found.status < 400) return ''
  const e = found.answer?.error
  return 'The cluster answers with status ' + found.status + (e ? ': ' + (e.reason || e) : '')
}

// Why a neighbor was left out.
const leftOutFor = {
  max_doc_share: 'in too many documents (expansion.max_doc_share)', not_in_index: 'in no document',
  no_positions: 'expressions, which the field cannot find (index_options)', token_graph: 'expressions, and the engine makes phrases of the text itself',
  combined_fields: 'expressions, whose words combined_fields finds in several fields', same_matches: 'in documents that this search may not find',
  mode: 'expressions, and the mode ranks by words', limit: 'too many for one search',
}

// Why nothing is added.
const sentences = {
  no_clause: 'the search has no query for words', not_json: 'the body is not one JSON object', too_deep: 'queries are nested too deeply',
  min_score: 'min_score cuts by scores, which added words raise (expansion.normalize_score)',
  as_typed: 'enough hits have the words as typed, and these keep their order', no_scores: 'only the order would change, and order does not count here',
  pit: 'the indices of the point in time are unknown', pit_first_page: 'the first page of this search was not expanded',
  source_parameter: 'the parameter source comes with a body', suggest_text: 'q is also the text of suggestions', q_and_body: 'q overrides the query of the body',
  msearch_lines: 'the lines are not headers and searches in turn', semicolon: 'the query string has a semicolon', parameters: 'the query string has invalid escapes',
  too_many_searches: 'the request has too many searches', too_many_clauses: 'the search has too many fields', too_many_highlights: 'the search has too many highlights',
  not_authorized: 'the cluster does not let this user search here', search_pipeline: 'a search pipeline may read the query',
  hidden: 'the answer would show the added words (expansion.hide_from)',
  clause_options: 'the query has an option that akin does not know', no_field: 'no field has that name',
  no_default_fields: 'the search names no field (expansion.default_fields)', fields_differ: 'its fields have different analyzers',
  query_syntax: 'the words have operators, such as quotes or wildcards', like_documents: 'the query names documents', runtime_field: 'the search defines the field itself',
  no_matrix: 'no matrix is bound to this index and field', not_words: 'the analyzer makes no whole words', not_text: 'the field has no text',
  mixed_indices: 'the indices analyze the field in different ways', unknown_to_cluster: 'the cluster does not know the index',
  no_terms: 'the analyzer leaves no word of the text', too_many_terms: 'the text is too long', not_nested: 'the segments are not in the nested field',
  no_neighbors: 'the matrix has no related words that are in the index', neighbors_too_frequent: 'the related words are in too many documents (expansion.max_doc_share)',
  term_limit: 'other parts of the search used up the terms (expansion.max_added_terms)',
  not_scoring: 'the query only filters', term_level: 'the query is not for text', positions: 'the query looks at the places of words', phrase: 'the query is a phrase (expansion.phrases)',
  other_query: 'akin does not expand queries of this kind', kql: 'the text is in the language of Kibana', template_query: 'a template makes the query',
  retriever_fields: 'a retriever makes several queries of the text', agentic_query: 'a model makes the query', unknown_query: 'akin does not know queries of this kind',
  nothing_added: 'no reason is known', dry_run: 'the client asked what would be added', off: 'the client switched akin off',
  filter_path: 'filter_path hides failures', answer_format: 'the answer is not asked for as JSON', content_type: 'the body is not said to be JSON', body_too_large: 'the body is too large',
  rejected_before: 'the cluster rejected such a search a short time ago', paused: 'the cluster refuses rewritten searches at the moment',
  disabled: 'the profile is switched off', unknown_profile: 'there is no such profile', enough_hits: 'the search finds enough (expansion.when)',
  shadow: 'akin only watches (expansion.shadow)', authorization_pending: 'whether this user may search is not known yet', memory: 'akin has no memory left for it',
  hybrid: 'it is a hybrid search', content_encoding: 'the body is compressed in a way that akin does not read', slow_body: 'the body came too slowly',
  templates_off: 'it is a template (expansion.templates)', template_parameters: 'it has a parameter that templates read differently',
  template_body: 'the body is no template', too_many_templates: 'the request has too many templates', not_rendered: 'the cluster does not render the template',
}
const sentence = reason => sentences[reason] || 'reason ' + (reason || 'unknown')

function summary() {
  const x = shown.explanation, parts = [], on = [...terms.values()].filter(t => t.factor)
  parts.push(count(totalOf(shown.direct), 'hit') + ' without akin, ' + totalOf(shown.akin) + ' with it.')
  const models = new Set(clausesOf(x).map(c => c.model).filter(m => m))
  const by = models.size ? ', by the documents and ' + [...models].join(', ') : ''
  if (x?.sent === 'rewritten') parts.push(count(on.length, 'term') + ' added' + by + (on.length < terms.size ? ', ' + (terms.size - on.length) + ' switched off' : '') + '.' + (x.matching ? ' The search is ' + x.matching + '.' : ''))
  else if (x?.outcome === 'rewritten' && (x.rejected || x.reranked)) parts.push('akin added nothing' + (x.rejected ? '' : ': the answer could not be put in order (' + x.reranked + ')') + '.')
  else if (x?.outcome === 'rewritten') parts.push('Terms would be added, but clients get the original search: this akin only tries itself out.')
  else if (x?.outcome === 'failed_open') parts.push('akin failed open (' + x.cause + '): the original was searched. Where caches were cold, the next search will do.')
  else if (x && terms.size && !on.length) parts.push('All terms are switched off.')
  else if (x) {
    const unknown = new Set(clausesOf(x).flatMap(c => (c.no_row || []).map(term => c.words?.[term] || term)))
    parts.push('akin added nothing: ' + sentence(x.reason) + (unknown.size ? '. It does not know ' + [...unknown].join(', ') : '') + '.')
  }
  const near = clausesOf(x).flatMap(c => (c.nearest || []).map(n => (n.word || n.known) + ' for ' + (c.words?.[n.term] || n.term)))
  if (near.length) parts.push('No document has some of the words. akin looks for the nearest ones that it knows: ' + [...new Set(near)].join(', ') + '.')
  const alternatives = clausesOf(x).flatMap(c => (c.alternatives || []).map(a => (a.word || a.term) + ' for ' + a.for + (a.source ? ' (' + a.source + ')' : '')))
  if (alternatives.length) parts.push('Found in their place, too: ' + [...new Set(alternatives)].join(', ') + '.')
  const left = clausesOf(x).flatMap(c => c.left_out || []).filter(l => !terms.has(l.term) && (!terms.size || l.reason !== 'not_in_index')) // another field may have added it
  for (const [reason, why] of Object.entries(leftOutFor)) {
    const words = new Set(left.filter(l => l.reason === reason).map(l => l.word || l.term))
    if (words.size) parts.push('Left out because they are ' + why + ': ' + [...words].join(', ') + '.')
  }
  if (x?.rejected) parts.push('The cluster rejected the rewritten search; its answer is that to the original.')
  return parts.join(' ')
}

function render(fresh) {
  show(problemOf(shown.akin) || problemOf(shown.direct))
  say('summary', problemOf(shown.akin) ? '' : summary())
  for (const id of ['hits', 'rewritten']) $(id).hidden = false
  $('terms').hidden = terms.size === 0
  renderHits()
  if (fresh) renderTerms()
  else updateTerms()
  renderSent()
}

// ---- hits

const keyOf = hit => hit._index + '/' + hit._id
let pieces = [] // of texts, that words are to be marked in; added says that added words are

// valueOf returns the text of a field of a document, also of a field inside
// another one, such as title.english, and of objects.
function valueOf(source, field) {
  let at = source
  for (const name of field.split('.')) {
    if (at === null || typeof at !== 'object' || Array.isArray(at) || !(name in at)) break
    at = at[name]
  }
  if (Array.isArray(at)) at = at.filter(v => typeof v !== 'object').join(' … ')
  return at === null || at === undefined || typeof at === 'object' ? '' : String(at)
}

function searchedFields() {
  return [...new Set(clausesOf(shown.explanation).filter(c => c.terms && c.field).map(c => c.field))]
}

// foundBy returns the added terms that a hit matches, by the names of their
// clauses. There are none where akin hides them, nor without akin.
function foundBy(hit) {
  const matched = hit.matched_queries || []
  const names = Array.isArray(matched) ? matched : Object.keys(matched)
  return [...terms.values()].filter(t => t.fields.some(f => names.includes('akin:' + f + ':' + t.term)))
}

function hitOf(hit, move, added) {
  const source = hit._source || {}, searched = searchedFields()
  const named = ['title', 'name', 'headline', 'subject'].find(f => valueOf(source, f))
  const title = searched.find(f => named && (f === named || f.startsWith(named + '.'))) || named
  const clip = s => s.length > 300 ? s.slice(0, 300).replace(/[\uD800-\uDBFF]$/, '') + ' …' : s
  const li = el('li', {})
  const text = (className, field) => {
    const node = el('span', { className, dir: 'auto' }), value = clip(valueOf(source, field))
    node.textContent = value
    if (searched.includes(field)) pieces.push({ index: hit._index, field, text: value, node, added })
    return node
  }
  li.append(title ? text('hit', title) : el('span', { className: 'hit' }, hit._id))
  if (move) li.append(el('span', { className: 'move ' + move.kind }, move.text))
  const others = searched.filter(f => f !== title && valueOf(source, f) !== valueOf(source, title || f + '.none'))
  const first = others.length || !Object.keys(source).length ? others : Object.keys(source).filter(f => f !== title && valueOf(source, f))
  for (const f of first.slice(0, 3)) li.append(text('text', f))
  const by = foundBy(hit).flatMap(t => [', ', el('mark', { className: 'tone' + t.tone }, t.word)])
  if (by.length) li.append(el('span', { className: 'by' }, 'found by ', ...by.slice(1)))
  if (query) li.append(judge(hit, title ? clip(valueOf(source, title)) : hit._id))
  li.append(el('span', { className: 'figures' }, keyOf(hit) + (hit._score == null ? '' : ', score ' + figure(hit._score, 4))))
  return li
}

function renderHits() {
  const direct = hitsOf(shown.direct), akin = hitsOf(shown.akin)
  const rank = (hits, hit) => hits.findIndex(h => keyOf(h) === keyOf(hit))
  pieces = []
  $('direct').replaceChildren(...direct.map(hit => hitOf(hit, rank(akin, hit) < 0 ? { kind: 'gone', text: '− gone' } : null, false)))
  $('akin').replaceChildren(...akin.map((hit, k) => {
    const was = rank(direct, hit)
    const move = was < 0 ? { kind: 'new', text: '+ new' } : was > k ? { kind: 'up', text: '▲ up ' + (was - k) } :
      was < k ? { kind: 'down', text: '▼ down ' + (k - was) } : { kind: 'same', text: '= same' }
    return hitOf(hit, move, true)
  }))
  for (const side of ['direct', 'akin']) if (!$(side).children.length) $(side).append(el('li', { className: 'small' }, 'No hits.'))
}

// ---- judgments

// They are kept in the browser, by index expression, query and document.
const gradeOf = { good: 2, 'so-so': 1, bad: 0 }
const storeName = 'akin judgments'
const judgments = new Map()
const judgedKey = (...parts) => JSON.stringify(parts)

function loadJudgments() {
  try {
    for (const [key, word] of JSON.parse(localStorage.getItem(storeName)) || []) if (word in gradeOf) judgments.set(key, word)
  } catch { /* they are not the page's own, or the browser keeps nothing */ }
  renderJudgments()
}

// judge returns the buttons for a hit of a query. akin eval knows queries by
// their words, which a body of one's own need not have.
function judge(hit, name) {
  const key = judgedKey(asked.index, query, hit._id)
  const buttons = Object.keys(gradeOf).map(word => {
    const b = el('button', { type: 'button' }, word)
    b.dataset.judged = key
    b.setAttribute('aria-pressed', String(judgments.get(key) === word))
    b.addEventListener('click', () => {
      if (judgments.get(key) === word) judgments.delete(key)
      else judgments.set(key, word)
      for (const other of document.querySelectorAll('button[data-judged]')) { // the hit may stand in both lists
        if (other.dataset.judged === key) other.setAttribute('aria-pressed', String(judgments.get(key) === other.textContent))
      }
      try { localStorage.setItem(storeName, JSON.stringify([...judgments])) } catch { show('The browser does not keep the judgments: save them before you leave.') }
      renderJudgments()
    })
    return b
  })
  return el('span', { className: 'judge', role: 'group', 'aria-label': 'Judge ' + name }, ...buttons)
}

// judgedIn returns query, document and grade of the judgments of an index.
const judgedIn = index => [...judgments].map(([key, word]) => [...JSON.parse(key), gradeOf[word]]).filter(r => r[0] === index).map(r => r.slice(1))

function judgmentsFile(index) {
  const cell = v => '"' + String(v).replace(/^[=+\-@\t\r]/, ' $&').replaceAll('"', '""') + '"' // a blank, so that no spreadsheet computes it
  return 'query,document,grade\n' + judgedIn(index).map(r => r.map(cell).join(',') + '\n').join('')
}

// gradesOf returns the grades of the judged hits of each query of an index, by
// their ids.
function gradesOf(index) {
  const all = new Map()
  for (const [words, id, grade] of judgedIn(index)) all.set(words, (all.get(words) || new Map()).set(id, grade))
  return all
}

// ranks has the ids of the first hits without and with akin of the last search
// for each index and query, with one setting of the page.
let ranks = new Map(), ranked = ''

function keepRanks(words, found, request) {
  const setting = JSON.stringify({ ...request, body: request.body.query.multi_match.fields })
  if (setting !== ranked) ranks = new Map()
  ranked = setting
  ranks.set(judgedKey(request.index, words), [found.direct, found.akin].map(f => hitsOf(f).map(hit => hit._id)))
  renderJudgments()
}

// ndcg returns nDCG@10 of a ranking, as akin eval does.
function ndcg(ids, grades) {
  const gain = list => list.slice(0, 10).reduce((sum, grade, k) => sum + grade / Math.log2(k + 2), 0)
  const best = gain([...grades.values()].sort((a, b) => b - a))
  return best ? gain(ids.map(id => grades.get(id) || 0)) / best : 0
}

let savedJudgments = ''
function renderJudgments() {
  const index = $('index').value.trim(), own = judgedIn(index), others = judgments.size - own.length, grades = gradesOf(index)
  say('judged', own.length ? count(own.length, 'judgment') + ' of ' + count(grades.size, 'query', 'queries') + ' in ' + index + '.' +
    (others ? ' ' + others + ' of other indices.' : '') : 'None yet in ' + (index || 'any index') + '.')
  const cells = values => values.map(v => el('td', {}, v === undefined ? '–' : v.toFixed(3)))
  const values = []
  $('queries').tBodies[0].replaceChildren(...[...grades].map(([words, judged]) => {
    const both = (ranks.get(judgedKey(index, words)) || []).map(ids => ndcg(ids, judged)), b = el('button', { type: 'button' }, words)
    b.addEventListener('click', () => {
      $('body').value = ''
      $('query').value = words
      search(false)
    })
    if (both.length) values.push(both)
    return el('tr', {}, el('th', { scope: 'row' }, b), el('td', {}, String(judged.size)), ...cells([both[0], both[1]]))
  }))
  const judged = grades.get(query), both = ranks.get(judgedKey(index, query))
  for (const [side, id] of ['direct-ndcg', 'akin-ndcg'].entries()) say(id, judged && both ? 'nDCG@10 ' + ndcg(both[side], judged).toFixed(3) : '')
  const mean = side => values.reduce((sum, both) => sum + both[side], 0) / values.length
  $('queries').tFoot.replaceChildren(...values.length > 1 ? [el('tr', {}, el('th', { scope: 'row' }, 'Mean of ' + values.length), el('td'), ...cells([mean(0), mean(1)]))] : [])
  URL.revokeObjectURL(savedJudgments)
  savedJudgments = URL.createObjectURL(new Blob([judgmentsFile(index)], { type: 'text/csv' }))
  $('saveJudgments').href = savedJudgments
  for (const id of ['queries', 'measure', 'saveJudgments', 'forget']) $(id).hidden = !own.length
}

// measure searches each judged query, until another search begins.
async function measure() {
  const mine = ++turn
  show('')
  busy(true)
  try {
    for (const words of gradesOf($('index').value.trim()).keys()) {
      const request = requestOf(bodyOf(words)), found = await ask(request, [])
      if (mine !== turn) return
      show(problemOf(found.akin) || problemOf(found.direct))
      keepRanks(words, found, request)
    }
  } catch (e) { if (mine === turn) show(e) } finally { if (mine === turn) busy(false) }
}

function forget() {
  const index = $('index').value.trim()
  for (const key of judgments.keys()) if (JSON.parse(key)[0] === index) judgments.delete(key)
  try { localStorage.setItem(storeName, JSON.stringify([...judgments])) } catch { /* it kept none */ }
  for (const b of document.querySelectorAll('button[data-judged]')) b.setAttribute('aria-pressed', String(judgments.has(b.dataset.judged) && judgments.get(b.dataset.judged) === b.textContent))
  renderJudgments()
}

// highlight marks the words of hits whose index terms were searched for. The
// cluster says which these are, as its analyzers know them.
async function highlight(mine) {
  const own = new Set(clausesOf(shown.explanation).flatMap(c => c.terms || []))
  const groups = new Map()
  for (const p of pieces) {
    const key = JSON.stringify([p.index, p.field])
    groups.set(key, [...groups.get(key) || [], p])
  }
  for (const [key, list] of [...groups].slice(0, 12)) {
    const [index, field] = JSON.parse(key)
    let found
    try {
      found = await call(base + 'analysis', { index, field, text: list.map(p => p.text).join('\n'), authorization: authorization() })
    } catch { continue } // then words are not marked
    if (mine !== turn) return
    let start = 0
    for (const p of list) {
      markWords(p, start, found.answer?.tokens || [], own)
      start += p.text.length + 1
    }
  }
  const names = [...new Map([...terms.values()].map(t => [t.fromWord, t.tone]))]
  $('legend').replaceChildren('Marked: ', el('mark', { className: 'own' }, 'words of the search'),
    ...names.flatMap(([from, tone]) => [', ', el('mark', { className: 'tone' + tone }, from ? 'added for ' + from : 'of the first hits')]))
}

function markWords(piece, start, tokens, own) {
  const parts = []
  let at = 0
  for (const t of tokens) {
    const from = t.start_offset - start, to = t.end_offset - start
    const added = piece.added && terms.get(t.token)
    if (from < at || to > piece.text.length || !own.has(t.token) && !added) continue
    parts.push(piece.text.slice(at, from))
    const mark = el('mark', { className: own.has(t.token) ? 'own' : 'tone' + added.tone }, piece.text.slice(from, to))
    if (!own.has(t.token)) mark.title = added.from ? 'added for ' + added.fromWord : 'of the first hits'
    parts.push(mark)
    at = to
  }
  piece.node.replaceChildren(...parts, piece.text.slice(at))
}

// ---- added terms

function renderTerms() {
  const sorted = [...terms.values()].sort((a, b) => Math.abs(b.boost) - Math.abs(a.boost))
  $('chips').replaceChildren(...sorted.map(t => {
    const on = el('input', { type: 'checkbox' })
    const slider = el('input', { type: 'range', min: '0', max: '2', step: '0.1', 'aria-label': 'What ' + t.word + ' counts for' })
    const times = el('output')
    const put = factor => {
      on.checked = factor > 0
      slider.value = String(factor)
      times.textContent = '× ' + factor
    }
    t.set = factor => {
      t.factor = factor
      put(factor)
      adjusted()
    }
    put(t.factor)
    on.addEventListener('change', () => t.set(on.checked ? 1 : 0))
    slider.addEventListener('input', () => { times.textContent = '× ' + slider.value })
    slider.addEventListener('change', () => t.set(Number(slider.value)))
    t.counts = el('span', { className: 'counts' })
    const facts = [t.word !== t.term && 'index term ' + t.term, t.similarity !== undefined && 'similarity ' + figure(t.similarity),
      t.fit !== undefined && 'fit to the text ' + figure(t.fit), t.idf !== undefined && 'idf ' + figure(t.idf), 'in ' + t.fields.join(', ')]
    t.item = el('li', {}, el('div', { className: 'term' }, el('label', {}, on, el('mark', { className: 'tone' + t.tone }, t.word)), t.counts),
      el('span', { className: 'slide' }, slider, times),
      el('details', {}, el('summary', {}, 'More'), el('span', { className: 'figures' }, facts.filter(Boolean).join(' · ')),
        el('span', { className: 'actions' }, ...ruleButtons(t.from, t.term), neighborsButton(t.term, t.word))))
    return t.item
  }))
  updateTerms()
}

function updateTerms() {
  for (const t of terms.values()) {
    t.item.classList.toggle('off', !t.factor)
    t.counts.textContent = t.factor ? figure(t.boost, 2) + (t.from ? ' of ' + t.fromWord : ' by the first hits') : 'off'
  }
}

let waiting = 0
function adjusted() {
  clearTimeout(waiting)
  waiting = setTimeout(() => search(true), 150)
}

// ---- the rewritten search

function renderSent() {
  const x = shown.explanation, sent = x?.rewritten?.body, original = x?.original?.body
  $('curl').hidden = !sent
  if (!sent) {
    $('sent').textContent = x?.rewritten?.body_size ? 'It is too large to be kept.' : original ? JSON.stringify(original, null, 2) : ''
    return
  }
  const known = new Set(), text = JSON.stringify
  const learn = v => {
    if (v === null || typeof v !== 'object') return
    if (!Array.isArray(v) && Object.keys(v).length) known.add(text(v))
    Object.values(v).forEach(learn)
  }
  learn(original)
  const parts = [] // [text, whether akin added it]
  const put = (s, added) => {
    if (parts.length && parts.at(-1)[1] === added) parts.at(-1)[0] += s
    else parts.push([s, added])
  }
  const isMap = v => v !== null && typeof v === 'object' && !Array.isArray(v)
  const walk = (v, was, indent) => {
    const inner = indent + '  '
    if (was !== undefined && text(v) === text(was) || isMap(v) && known.has(text(v))) {
      put(text(v, null, 2).replaceAll('\n', '\n' + indent), false)
    } else if (isMap(v) || Array.isArray(v)) {
      const list = Array.isArray(v), was2 = list === Array.isArray(was) && was ? was : {}, added = was === undefined
      const entries = Object.entries(v)
      put((list ? '[' : '{') + '\n', added)
      entries.forEach(([key, value], k) => {
        const old = Object.hasOwn(was2, key) ? was2[key] : undefined
        put(inner + (list ? '' : text(key) + ': '), list ? added : old === undefined)
        walk(value, old, inner)
        put((k < entries.length - 1 ? ',' : '') + '\n', added)
      })
      put(indent + (list ? ']' : '}'), added)
    } else put(text(v), true)
  }
  walk(sent, original, '')
  $('sent').replaceChildren(...parts.map(([s, added]) => added ? el('ins', {}, s) : s))
}

function curlOf() {
  const quoted = s => "'" + s.replaceAll("'", "'\\''") + "'"
  const m = shown.explanation.rewritten, path = encodeURIComponent(asked.index).replaceAll('%2C', ',')
  return 'curl -s -X POST ' + quoted(setup.cluster + '/' + path + '/_search' + (m.raw_query ? '?' + m.raw_query : '')) +
    " -H 'Content-Type: application/json' -d " + quoted(JSON.stringify(m.body))
}

// copy puts a text on the clipboard. Browsers offer that to pages of HTTPS and
// of this machine; elsewhere an element that is selected does it.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const area = el('textarea', { value: text })
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    if (!done) throw new Error('The browser does not let the page copy.')
  }
}

// ---- neighbors

const versionsOf = name => setup.matrices.find(m => m.name === name)?.versions || []

const nameOf = (id, active) => id.slice(0, 32) + (active ? ' (served)' : '')

// renderVersions offers the versions of a matrix and chooses the served one. That
// is asked for without its name: a new one may be served while the page is open.
function renderVersions() {
  const versions = versionsOf($('matrix').value)
  const option = (v, value) => el('option', { value }, nameOf(v.id, v.active))
  $('version').replaceChildren(...versions.map(v => option(v, v.active ? '' : v.id)))
  $('other').replaceChildren(el('option', { value: '' }, 'nothing'), ...versions.map(v => option(v, v.id)))
  if (versions.some(v => v.active)) $('version').value = ''
}

function neighborsButton(term, word) {
  const b = el('button', { type: 'button', 'aria-label': 'Neighbors of ' + word }, 'Neighbors')
  b.addEventListener('click', () => {
    $('term').value = word
    neighbors()
    $('neighbors').scrollIntoView()
  })
  return b
}

const row = (version, term) => call(base + 'neighbors', { matrix: $('matrix').value, version, term })

async function neighbors() {
  show('')
  try {
    const asked = $('term').value.trim()
    let found = await row($('version').value, asked)
    if (!found.neighbors.length) { // as the field's analyzer makes it
      const tokens = await termOf(asked)
      const again = tokens && tokens !== asked ? await row($('version').value, tokens) : found
      if (again.neighbors.length) found = again
    }
    const [chosen] = $('version').selectedOptions
    if (chosen?.value === '') chosen.textContent = nameOf(found.version, true)
    const term = found.term || asked, other = $('other').value, word = found.word || term
    if (!other) {
      say('found', found.neighbors.length ? count(found.neighbors.length, 'neighbor') + ' of ' + word + ', which is in ' + count(found.doc_freq, 'document') + '.' : 'No neighbors of ' + word + '.' + (found.nearest ? ' Did you mean ' + found.nearest + '?' : ''))
      $('bars').replaceChildren(...found.neighbors.map(n => bar(term, n, n.word || n.term, figure(n.similarity) + ', in ' + count(n.doc_freq, 'document'))))
      return
    }
    const before = new Map((await row(other, word)).neighbors.map(n => [n.term, n]))
    const changes = []
    for (const n of found.neighbors) {
      const was = before.get(n.term)
      before.delete(n.term)
      if (!was) changes.push([n, n.similarity, '+ new: ' + figure(n.similarity)])
      else if (was.similarity !== n.similarity) changes.push([n, n.similarity - was.similarity, figure(was.similarity) + ' → ' + figure(n.similarity)])
    }
    for (const n of before.values()) changes.push([n, n.similarity, '− gone: ' + figure(n.similarity)])
    changes.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))
    say('found', changes.length ? count(changes.length, 'neighbor') + ' of ' + word + ' differ.' : 'The neighbors of ' + word + ' are the same.')
    $('bars').replaceChildren(...changes.map(([n, , text]) => bar(term, n, n.word || n.term, text)))
  } catch (e) { show(e) }
}

// termOf returns the first index term that a searched field makes of a word.
async function termOf(word) {
  const known = setup.indices.find(i => i.name === $('index').value) || setup.indices[0]
  const field = known?.fields[0]
  if (!field) return ''
  try {
    const found = await call(base + 'analysis', { index: known.name, field, text: word, authorization: authorization() })
    return found.answer?.tokens?.[0]?.token || ''
  } catch { return '' }
}

function bar(term, n, word, text) {
  return el('li', {}, el('span', {}, word),
    el('meter', { min: 0, max: 1, value: n.similarity, 'aria-label': 'Similarity of ' + word }),
    el('span', { className: 'figures' }, text), el('span', { className: 'actions' }, ...ruleButtons(term, n.term)))
}

// ---- overrides

const rules = new Map() // by pair
const pairOf = (a, b) => JSON.stringify([a, b].sort())

function ruleButtons(term, neighbor) {
  if (!term) return [] // a term of the first hits is nobody's neighbor
  const pair = pairOf(term, neighbor)
  return ['ban', 'pin'].map(action => {
    const b = el('button', { type: 'button', 'aria-label': action + ' ' + term + ' ' + neighbor }, action)
    b.dataset.pair = pair
    b.dataset.action = action
    b.addEventListener('click', () => {
      const off = rules.get(pair)?.action === action
      if (off) rules.delete(pair)
      else rules.set(pair, { action, term, neighbor })
      renderRules()
      const t = terms.get(neighbor)
      if (action === 'ban' && t?.from === term) t.set(off ? 1 : 0)
      say('ruled', off ? 'Removed: ' + ruleOf({ action, term, neighbor }) : ruleOf(rules.get(pair)))
    })
    b.setAttribute('aria-pressed', String(rules.get(pair)?.action === action))
    return b
  })
}

// ruleOf writes a rule as a line: terms in quotes, in which Go reads what JSON
// writes, unless they are plain.
function ruleOf(rule) {
  const quoted = s => /^[\p{L}\p{N}]+$/u.test(s) ? s : JSON.stringify(s)
  return [rule.action, quoted(rule.term), quoted(rule.neighbor)].join(' ')
}

let saved = ''
function renderRules() {
  const text = [...rules.values()].map(r => ruleOf(r) + '\n').join('')
  $('rules').value = text
  for (const b of document.querySelectorAll('button[data-pair]')) {
    b.setAttribute('aria-pressed', String(rules.get(b.dataset.pair)?.action === b.dataset.action))
  }
  URL.revokeObjectURL(saved)
  saved = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  $('download').href = saved
  $('download').hidden = !text
}

// ---- recent searches

async function recent() {
  try {
    const { explanations } = await call('_akin/explanations?limit=20')
    say('kept', explanations.length ? '' : 'None yet: akin keeps the last searches that it looked into.')
    $('recent').replaceChildren(...explanations.map(e => {
      const b = el('button', { type: 'button' }, 'Try ', ...e.text ? [el('bdi', {}, '“' + e.text + '”'), ' in '] : [], (e.index || 'all indices') + ' of ' + new Date(e.time).toLocaleTimeString())
      b.addEventListener('click', () => take(e))
      return el('li', {}, b, ' ', el('span', { className: 'small' }, e.endpoint + ', ' + e.outcome.replace('_', ' ') + (e.cause ? ': ' + e.cause : e.reason ? ': ' + sentence(e.reason) : '')))
    }))
  } catch (e) { say('kept', e.message) }
}

async function take(e) {
  try {
    const all = await call('_akin/explanations/' + encodeURIComponent(e.id))
    const body = all.original.body
    if (!body || typeof body !== 'object') throw new Error('The body of this search is not kept, or it has none.')
    $('index').value = all.index || '_all'
    $('profile').value = setup.profiles.includes(all.profile) ? all.profile : ''
    $('body').value = JSON.stringify(body, null, 2)
    $('json').open = true
    await search(false)
    $('hits').focus()
  } catch (e) { show(e) }
}

// ---- start

async function start() {
  $('search').addEventListener('submit', e => { e.preventDefault(); search(false) })
  $('neighbors').addEventListener('submit', e => { e.preventDefault(); neighbors() })
  $('matrix').addEventListener('change', renderVersions)
  $('refresh').addEventListener('click', recent)
  $('reset').addEventListener('click', () => terms.forEach(t => t.set(1)))
  $('curl').addEventListener('click', () => copy(curlOf()).then(() => say('copied', 'Copied.'), e => say('copied', e.message)))
  $('index').addEventListener('input', () => { fieldNames(); renderJudgments() })
  $('forget').addEventListener('click', forget)
  $('measure').addEventListener('click', measure)
  for (const id of ['profile', 'effort', 'matching', 'strength']) $(id).addEventListener('change', () => { if (asked) search(false) })
  $('link').addEventListener('click', () => copy(location.origin + location.pathname + hashOf()).then(() => say('done', 'The link is copied.'), show))
  try {
    setup = await call(base + 'setup')
  } catch (e) { show(e) }
  $('indices').append(...setup.indices.map(i => el('option', { value: i.name })))
  $('profile').append(...setup.profiles.map(p => el('option', { value: p }, p)))
  $('matrix').append(...setup.matrices.map(m => el('option', { value: m.name }, m.name)))
  renderVersions()
  loadJudgments()
  const wanted = follow()
  $('query').focus()
  await recent()
  if (wanted) await search(false)
  window.addEventListener('hashchange', () => {
    if (!location.hash.includes('=')) keepAddress() // a link inside the page
    else if (follow()) search(false)
  })
  busy(false)
}

start()
