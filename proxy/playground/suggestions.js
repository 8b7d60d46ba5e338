'use strict'
// Texts of documents and of users come into the page as text nodes only.

const $ = id => document.getElementById(id)

// el returns an element with properties and children.
function el(tag, props, ...children) {
  const e = Object.assign(document.createElement(tag), props)
  e.append(...children)
  return e
}

// call asks the admin port, with a body by POST. Its errors can be shown.
async function call(path, body) {
  let answer
  try {
    const url = new URL('_akin/suggestions/' + path, location.origin + location.pathname) // without a password that stands in the page's own
    answer = await fetch(url, body === undefined ? {} : {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
    })
  } catch {
    throw new Error('akin does not answer: is it still running?')
  }
  let value = {}
  try { value = await answer.json() } catch { /* the status says enough */ }
  if (!answer.ok) throw new Error(value.error?.reason || value.error || 'akin answers with status ' + answer.status)
  return value
}

let writable = false

// during runs a step of the page, and shows its error.
async function during(step) {
  const main = document.querySelector('main')
  $('error').textContent = ''
  main.setAttribute('aria-busy', 'true')
  try { await step() } catch (e) { $('error').textContent = e.message } finally { main.setAttribute('aria-busy', 'false') }
}

const pairOf = p => [el('bdi', { textContent: p.word }), ' → ', el('bdi', { textContent: p.to })]
const searchOf = s => ({ index: s.index, fields: s.fields, text: s.text })

// decide accepts, dismisses or takes back a pair.
const decide = (action, search, pair, said) => during(async () => {
  $('done').textContent = ''
  if (!$('by').value.trim()) { $('by').focus(); throw new Error('Type your name first.') }
  const { word, to, similarity } = pair
  await call('decide', { ...searchOf(search), action, word, to, similarity: similarity || 0, by: $('by').value.trim() })
  await list()
  $('done').textContent = said + ': ' + word + ' → ' + to
})

function proposal(search, p) {
  const li = el('li', {}, p.to
    ? el('span', { className: 'hit' }, ...pairOf(p))
    : el('span', { className: 'hit' }, 'without ', el('bdi', { textContent: p.word })))
  const beside = p.beside ? ' without ' + p.beside.join(', ') : ''
  li.append(el('span', { className: 'by' }, p.from + ', would find ' + p.found + beside))
  for (const title of p.titles || []) li.append(el('bdi', { className: 'text', textContent: title }))
  if (!p.to) return li
  const weight = el('select', { ariaLabel: 'How much it counts' }, el('option', { value: '1' }, 'exact'), el('option', { value: '0.5' }, 'half'), el('option', { value: '0.2' }, 'a fifth'))
  weight.value = p.similarity === 1 ? '1' : '0.5'
  const accept = el('button', { type: 'button', className: 'main', disabled: !writable }, 'Accept')
  const dismiss = el('button', { type: 'button', disabled: !writable }, 'Dismiss')
  accept.onclick = () => decide('accept', search, { ...p, similarity: Number(weight.value) }, 'Accepted')
  dismiss.onclick = () => decide('dismiss', search, p, 'Dismissed')
  li.append(el('span', { className: 'actions' }, weight, accept, dismiss))
  return li
}

function row(s) {
  const found = el('ol', { className: 'bare' })
  const look = el('button', { type: 'button' }, 'What would help?')
  look.onclick = () => during(async () => {
    const got = await call('propose', searchOf(s))
    found.replaceChildren(...got.proposals.map(p => proposal(s, p)))
    if (got.problem) found.append(el('li', { className: 'small', textContent: got.problem }))
    else if (!got.proposals.length) found.append(el('li', { className: 'small' }, 'Nothing that akin knows.'))
  })
  const compare = el('a', { href: 'playground#' + new URLSearchParams({ index: s.index, q: s.text, fields: s.fields }), textContent: 'Compare and judge' })
  return el('li', {}, el('span', { className: 'term' }, el('bdi', { className: 'hit', textContent: s.text }), compare, look),
    el('span', { className: 'by' }, el('bdi', { textContent: (s.index || 'all indices') + ', ' + s.fields }),
      ': ' + s.none + ' times nothing, ' + s.few + ' few, ' + s.related + ' only related words'), found)
}

function decided(d) {
  const undo = el('button', { type: 'button', disabled: !writable }, 'Undo')
  undo.onclick = () => decide('undo', d, d, 'Taken back')
  const what = d.similarity ? (d.similarity === 1 ? 'exact' : 'counts ' + d.similarity) : 'dismissed'
  const li = el('li', {}, el('span', { className: 'term' }, el('span', { className: 'hit' }, ...pairOf(d)), undo),
    el('span', { className: 'by' }, what + ', by ', el('bdi', { textContent: d.by }), ' on ' + d.at.slice(0, 10), d.gone ? ': no document has the word any more' : ''))
  if (!d.similarity) return li
  const rate = x => Number(x.toPrecision(2)).toString()
  const days = n => n + (n === 1 ? ' day' : ' days')
  const brought = (when, n) => [
    n.days ? when + ', ' + days(n.days) + ': ' + rate(n.none / n.days) + ' a day found nothing, ' + rate(n.found / n.days) + ' something' : '',
    n.shown ? when + ', ' + n.clicked + ' of ' + n.shown + (n.shown === 1 ? ' answer' : ' answers') + ' clicked' : '',
  ]
  li.append(el('span', { className: 'by brought' }, [...brought('before', d.before), ...brought('after', d.after)].filter(Boolean).join('; ')))
  return li
}

async function list() {
  const got = await call('list')
  writable = got.writable
  $('locked').hidden = writable
  $('searches').replaceChildren(...got.list.searches.map(row))
  if (!got.list.searches.length) $('searches').append(el('li', { className: 'small' }, 'None: see whether searches.collect is on.'))
  $('decided').replaceChildren(...got.list.decisions.map(decided))
  $('none').hidden = got.list.decisions.length > 0
  $('error').textContent = got.list.problem || ''
}

try { $('by').value = localStorage.getItem('akin-by') || '' } catch { /* private windows keep nothing */ }
$('by').onchange = () => { try { localStorage.setItem('akin-by', $('by').value.trim()) } catch { /* the same */ } }
during(list)
