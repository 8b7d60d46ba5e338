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
let turn = 0 // counts the searches: only the last one is shown

// ---- the search

function authorization() {
  const user = $('user').value, secret = $('secret').value
  if (!secret) return ''
  if (!user) return 'ApiKey ' + secret
  return 'Basic ' + btoa(String.fromCharCode(...new TextEncoder().encode(user + ':' + secret)))
}

const fieldsOf = () => $('fields').value.split(/[\s,]+/).filter(Boolean)

function bodyOf() {
  if ($('body').value.trim()) {
    try { return JSON.parse($('body').value) } catch (e) { throw new Error('The body is no JSON: ' + e.message) }
  }
  const match = { query: $('query').value }
  const known = setup.indices.find(i => i.name === $('index').value)
  const fields = fieldsOf().length ? fieldsOf() : known ? known.fields : []
  if (fields.length) match.fields = fields
  return { size: 10, query: { multi_match: match } }
}

async function search(again) {
  const mine = ++turn
  clearTimeout(waiting)
  show('')
  busy(true)
  try {
    const next = again ? asked : { index: $('index').value.trim(), profile: $('profile').value, body: bodyOf() }
    if (!next) return
    say('summary', 'Searching …')
    const adjusted = again ? [...terms.values()].filter(t => t.factor !== 1).map(t => ({ term: t.term, factor: t.factor })) : []
    const found = await call(base + 'search', { ...next, adjusted, authorization: authorization() })
    if (mine !== turn) return
    shown = found
    asked = next
    if (!again) terms = termsOf(found.explanation)
    else note(termsOf(found.explanation))
    render(!again)
    await highlight(mine)
    if (!again) await recent()
  } catch (e) {
    if (mine === turn) { say('summary', ''); show(e) }
  } finally {
    if (mine === turn) busy(false)
  }
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

function summary() {
  const x = shown.explanation, parts = []
  parts.push(count(totalOf(shown.direct), 'hit') + ' without akin, ' + totalOf(shown.akin) + ' with it.')
  const models = new Set(clausesOf(x).map(c => c.model).filter(m => m))
  const by = models.size ? ', by the documents and ' + [...models].join(', ') : ''
  if (x?.sent === 'rewritten') parts.push(count(terms.size, 'term') + ' added' + by + '.')
  else if (x?.outcome === 'rewritten') parts.push('Terms would be added, but clients get the original search: this akin only tries itself out.')
  else if (x?.outcome === 'failed_open') parts.push('akin failed open (' + x.cause + '): the original was searched. Where caches were cold, the next search will do.')
  else if (x) parts.push('akin added nothing: ' + (x.reason || 'no reason is known') + '.')
  const near = clausesOf(x).flatMap(c => (c.nearest || []).map(n => (n.word || n.known) + ' for ' + (c.words?.[n.term] || n.term)))
  if (near.length) parts.push('No document has some of the words. akin looks for the nearest ones that it knows: ' + [...new Set(near)].join(', ') + '.')
  const alternatives = clausesOf(x).flatMap(c => (c.alternatives || []).map(a => (a.word || a.term) + ' for ' + a.for + (a.source ? ' (' + a.source + ')' : '')))
  if (alternatives.length) parts.push('Found in their place, too: ' + [...new Set(alternatives)].join(', ') + '.')
  const left = clausesOf(x).flatMap(c => c.left_out || []).filter(l => !terms.size || l.reason !== 'not_in_index')
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
let pieces = [] // of texts, that words are to be marked in

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

function hitOf(hit, move) {
  const source = hit._source || {}, searched = searchedFields()
  const named = ['title', 'name', 'headline', 'subject'].find(f => valueOf(source, f))
  const title = searched.find(f => named && (f === named || f.startsWith(named + '.'))) || named
  const clip = s => s.length > 300 ? s.slice(0, 300).replace(/[\uD800-\uDBFF]$/, '') + ' …' : s
  const li = el('li', {})
  const text = (className, field) => {
    const node = el('span', { className, dir: 'auto' }), value = clip(valueOf(source, field))
    node.textContent = value
    if (searched.includes(field)) pieces.push({ index: hit._index, field, text: value, node })
    return node
  }
  li.append(title ? text('hit', title) : el('span', { className: 'hit' }, hit._id))
  if (move) li.append(el('span', { className: 'move ' + move.kind }, move.text))
  const others = searched.filter(f => f !== title && valueOf(source, f) !== valueOf(source, title || f + '.none'))
  const first = others.length || !Object.keys(source).length ? others : Object.keys(source).filter(f => f !== title && valueOf(source, f))
  for (const f of first.slice(0, 3)) li.append(text('text', f))
  const by = foundBy(hit).flatMap(t => [', ', el('mark', { className: 'tone' + t.tone }, t.word)])
  if (by.length) li.append(el('span', { className: 'by' }, 'found by ', ...by.slice(1)))
  if (judging()) li.append(judge(hit, title ? clip(valueOf(source, title)) : hit._id))
  li.append(el('span', { className: 'figures' }, keyOf(hit) + (hit._score == null ? '' : ', score ' + figure(hit._score, 4))))
  return li
}

function renderHits() {
  const direct = hitsOf(shown.direct), akin = hitsOf(shown.akin)
  const rank = (hits, hit) => hits.findIndex(h => keyOf(h) === keyOf(hit))
  pieces = []
  $('direct').replaceChildren(...direct.map(hit => hitOf(hit, rank(akin, hit) < 0 ? { kind: 'gone', text: '− gone' } : null)))
  $('akin').replaceChildren(...akin.map((hit, k) => {
    const was = rank(direct, hit)
    if (was < 0) return hitOf(hit, { kind: 'new', text: '+ new' })
    if (was > k) return hitOf(hit, { kind: 'up', text: '▲ up ' + (was - k) })
    if (was < k) return hitOf(hit, { kind: 'down', text: '▼ down ' + (k - was) })
    return hitOf(hit, { kind: 'same', text: '= same' })
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

// judging says whether hits can be judged: akin eval knows queries by their
// words, which a body of one's own need not have.
const judging = () => asked && !$('body').value.trim() && asked.body.query?.multi_match?.query?.trim()

function judge(hit, name) {
  const key = judgedKey(asked.index, judging().trim(), hit._id)
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

let savedJudgments = ''
function renderJudgments() {
  const index = $('index').value.trim(), own = judgedIn(index), others = judgments.size - own.length
  say('judged', own.length ? count(own.length, 'judgment') + ' of ' + count(new Set(own.map(r => r[0])).size, 'query', 'queries') + ' in ' + index + '.' +
    (others ? ' ' + others + ' of other indices.' : '') : 'None yet in ' + (index || 'any index') + '.')
  URL.revokeObjectURL(savedJudgments)
  savedJudgments = URL.createObjectURL(new Blob([judgmentsFile(index)], { type: 'text/csv' }))
  $('saveJudgments').href = savedJudgments
  for (const id of ['saveJudgments', 'forget']) $(id).hidden = !own.length
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
    const added = terms.get(t.token)
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
  $('chips').replaceChildren(...[...terms.values()].map(t => {
    const on = el('input', { type: 'checkbox', checked: true })
    const slider = el('input', { type: 'range', min: '0', max: '2', step: '0.1', value: '1', 'aria-label': 'What ' + t.word + ' counts for' })
    const times = el('output', {}, '× 1')
    const change = factor => {
      t.factor = factor
      on.checked = factor > 0
      slider.value = String(factor)
      times.textContent = '× ' + factor
      adjusted()
    }
    on.addEventListener('change', () => change(on.checked ? 1 : 0))
    slider.addEventListener('input', () => { times.textContent = '× ' + slider.value })
    slider.addEventListener('change', () => change(Number(slider.value)))
    t.set = change
    t.figures = el('span', { className: 'figures' })
    t.item = el('li', {}, el('label', {}, on, el('mark', { className: 'tone' + t.tone }, t.word)),
      t.figures, el('span', { className: 'slide' }, slider, times),
      el('span', { className: 'actions' }, ...ruleButtons(t.from, t.term), neighborsButton(t.term, t.word)))
    return t.item
  }))
  updateTerms()
}

function updateTerms() {
  for (const t of terms.values()) {
    t.item.classList.toggle('off', t.factor === 0)
    const parts = [t.from ? 'for ' + t.fromWord : 'of the first hits']
    if (t.word !== t.term) parts.unshift('term ' + t.term)
    if (t.similarity !== undefined) parts.push('similarity ' + figure(t.similarity))
    if (t.fit !== undefined) parts.push('fit to the text ' + figure(t.fit))
    if (t.idf !== undefined) parts.push('idf ' + figure(t.idf))
    parts.push('boost ' + figure(t.boost), t.fields.join(', '))
    t.figures.textContent = parts.join(' · ')
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

function renderVersions() {
  const options = versionsOf($('matrix').value).map(v => el('option', { value: v.id }, v.id.slice(0, 32) + (v.active ? ' (served)' : '')))
  $('version').replaceChildren(...options)
  $('other').replaceChildren(el('option', { value: '' }, 'nothing'), ...options.map(o => o.cloneNode(true)))
  const active = versionsOf($('matrix').value).find(v => v.active)
  if (active) $('version').value = active.id
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
      return el('li', {}, b, ' ', el('span', { className: 'small' }, e.endpoint + ', ' + e.outcome.replace('_', ' ') + (e.reason || e.cause ? ': ' + (e.reason || e.cause) : '') + ', ' + count(e.added_terms, 'term') + ' added'))
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
  const fieldNames = () => $('fieldnames').replaceChildren(...(setup.indices.find(i => i.name === $('index').value)?.fields || []).map(f => el('option', { value: f })))
  $('index').addEventListener('input', () => { fieldNames(); renderJudgments() })
  $('forget').addEventListener('click', forget)
  try {
    setup = await call(base + 'setup')
  } catch (e) { show(e) }
  $('indices').append(...setup.indices.map(i => el('option', { value: i.name })))
  $('profile').append(...setup.profiles.map(p => el('option', { value: p }, p)))
  $('matrix').append(...setup.matrices.map(m => el('option', { value: m.name }, m.name)))
  renderVersions()
  const wanted = new URLSearchParams(location.hash.slice(1)) // which no server sees
  $('index').value = wanted.get('index') || setup.indices[0]?.name || ''
  $('query').value = wanted.get('q') || ''
  fieldNames()
  loadJudgments()
  $('query').focus()
  await recent()
  if ($('index').value && $('query').value) await search(false)
  busy(false)
}

start()
