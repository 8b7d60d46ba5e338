'use strict'
// Uses the JavaScript client of Elasticsearch as applications do, and prints
// what it answers.

const fs = require('fs')
const { Client } = require('@elastic/elasticsearch')

const [node, index, file] = process.argv.slice(2)
const fixture = JSON.parse(fs.readFileSync(file, 'utf8'))
const oddID = 'a/b c%2F+ü?#&'
const dated = `<${index}-{2026.01||/M{yyyy.MM}}>`
const client = new Client({ node })
const steps = []

// record calls a function and keeps what it returns or throws.
async function record (step, call) {
  try {
    steps.push({ step, result: await call() })
  } catch (error) {
    if (error.meta === undefined) throw error // a mistake of the program
    const { statusCode, body } = error.meta
    steps.push({ step, error: { class: error.name, status: statusCode || undefined, body } })
  }
}

// Read all documents about cars, two at a time, at one point in time.
async function pages () {
  let { id } = await client.openPointInTime({ index, keep_alive: '1m' })
  const found = []
  let after
  for (;;) {
    const answer = await client.search({
      pit: { id, keep_alive: '1m' },
      query: { match: { body: 'car' } },
      sort: [{ n: 'asc' }, '_shard_doc'],
      search_after: after,
      size: 2
    })
    id = answer.pit_id
    const hits = answer.hits.hits
    if (hits.length === 0) break
    found.push(...hits)
    after = hits[hits.length - 1].sort
  }
  return { hits: found, closed: await client.closePointInTime({ id }) }
}

// Read whole answers of a scroll, two hits each.
async function scrollSearch () {
  const ids = []
  for await (const answer of client.helpers.scrollSearch({ index, size: 2, query: { match: { body: 'car' } } })) {
    ids.push(...answer.body.hits.hits.map(hit => hit._id))
  }
  return ids.sort()
}

// Read the documents of a scroll.
async function scrollDocuments (query) {
  const titles = []
  for await (const document of client.helpers.scrollDocuments({ index, size: 25, query })) {
    titles.push(document.title ?? null)
  }
  return titles.sort()
}

// Search with the helper that gathers searches for one request.
async function msearchHelper () {
  const helper = client.helpers.msearch({ flushInterval: 50 })
  const search = query => helper.search({ index }, { query }).then(answer => answer.documents)
  const bad = helper.search({ index: 'akin-e2e-missing' }, {}).catch(error => error.name)
  const found = await Promise.all([search({ match: { body: 'lorry' } }), search({ term: { n: 7 } }), bad])
  helper.stop()
  return found
}

// Write with the helper, which is told by onDrop what the cluster refuses.
async function bulkHelper (documents) {
  const dropped = []
  const { total, successful, failed } = await client.helpers.bulk({
    datasource: documents,
    onDocument: ({ id }) => ({ index: { _index: index, _id: id } }),
    onDrop: ({ status, error }) => dropped.push({ status, error }),
    flushBytes: 2000,
    concurrency: 1 // so that two runs write in the same order
  })
  return { total, successful, failed, dropped }
}

// Write and search with bodies that are compressed both ways.
async function compressed () {
  const squeezed = new Client({ node, compression: true })
  const operations = []
  for (let i = 0; i < 10; i++) {
    operations.push({ index: { _id: `gzip-${i}` } }, { body: 'zipped '.repeat(50) })
  }
  const written = await squeezed.bulk({ index, operations, refresh: true })
  const answer = await squeezed.search({ index, query: { match: { body: 'car' } }, size: 30, sort: ['_score', 'n'] })
  await squeezed.close()
  return { written, answer }
}

// Take the addresses of the nodes from the cluster.
async function sniffed () {
  const sniffing = new Client({ node, sniffOnStart: true })
  await new Promise((resolve, reject) => {
    sniffing.diagnostic.on('sniff', error => error ? reject(error) : resolve())
  })
  const nodes = sniffing.connectionPool.connections.map(connection => connection.url.href)
  const count = await sniffing.count({ index })
  await sniffing.close()
  return { nodes, count }
}

// Send a header of one's own and return the answer's.
async function headers () {
  const { headers, statusCode } = await client.search({ index, size: 0 }, { opaqueId: 'from-js', meta: true })
  const { 'x-opaque-id': id, 'x-elastic-product': product, 'content-type': type } = headers
  return { id, product, type, statusCode }
}

async function main () {
  await record('ping', () => client.ping())
  await record('info', () => client.info())

  await record('exists before', () => client.indices.exists({ index }))
  await record('create index', () => client.indices.create({ index, ...fixture.definition }))
  await record('create index again', () => client.indices.create({ index }))
  await record('exists', () => client.indices.exists({ index }))
  await record('mapping', () => client.indices.getMapping({ index }))

  await record('bulk', () => client.bulk({
    index,
    operations: fixture.documents.flatMap(({ id, fields }) => [{ index: { _id: id } }, fields])
  }))
  await record('bulk helper', () => bulkHelper(fixture.documents.map(({ id, fields }) => ({ id: `copy-${id}`, n: fields.n }))))
  await record('bulk helper with failing items', () => bulkHelper([{ id: 'fine', n: 1 }, { id: 'bad', n: 'many' }]))
  await record('bulk with failing items', () => client.bulk({
    index,
    operations: [
      { create: { _id: 'car' } }, { n: 1 },
      { index: { _id: 'bad' } }, { n: 'many' },
      { index: { _id: oddID } }, { body: 'odd', n: 100 },
      { delete: { _id: 'nobody' } }
    ]
  }))
  await record('refresh', () => client.indices.refresh({ index }))

  await record('search car', () => client.search({
    index,
    query: { match: { body: 'car' } },
    size: 20,
    sort: [{ _score: 'desc' }, { n: 'asc' }],
    _source: ['title', 'n'],
    highlight: { fields: { body: {} } },
    track_scores: true,
    track_total_hits: true,
    aggs: { n: { stats: { field: 'n' } } }
  }))
  await record('search by parameters', () => client.search({ index, q: 'body:lorry', size: 3, filter_path: 'hits.hits._id' }))
  await record('search filler', () => client.search({
    index,
    query: { bool: { must: { match: { body: 'filler' } }, filter: { range: { n: { lt: 30 } } } } },
    from: 5,
    size: 3,
    sort: ['n'],
    _source_excludes: ['parts'],
    track_total_hits: 10,
    timeout: '10s',
    aggs: { tens: { histogram: { field: 'n', interval: 10 }, aggs: { most: { max: { field: 'n' } } } } }
  }))
  await record('scroll car', scrollSearch)
  await record('scroll documents of car', () => scrollDocuments({ match: { body: 'car' } }))
  await record('scroll all documents', () => scrollDocuments({ match_all: {} }))
  await record('pages of car', pages)
  await record('msearch of car', () => client.msearch({
    searches: [
      { index }, { query: { match: { body: 'car' } }, sort: ['_score', 'n'] },
      { index: 'akin-e2e-missing' }, { query: { match_all: {} } }
    ]
  }))
  await record('msearch helper', msearchHelper)
  await record('count of car', () => client.count({ index, query: { match: { body: 'car' } } }))
  await record('count', () => client.count({ index }))
  await record('async search', () => client.asyncSearch.submit({
    index, query: { match: { body: 'lorry' } }, wait_for_completion_timeout: '10s'
  }))

  await record('get', () => client.get({ index, id: 'car' }))
  await record('get with an odd id', () => client.get({ index, id: oddID }))
  await record('get source', () => client.getSource({ index, id: 'car-red', _source_includes: 'n' }))
  await record('get missing', () => client.get({ index, id: 'nobody' }))
  await record('mget', () => client.mget({ index, ids: ['car', 'nobody', oddID] }))
  await record('exists document', () => client.exists({ index, id: oddID }))
  await record('exists no document', () => client.exists({ index, id: 'nobody' }))
  await record('update', () => client.update({ index, id: 'lorry', doc: { n: 4000 } }))
  await record('upsert', () => client.update({ index, id: 'new', doc: { n: 1 }, doc_as_upsert: true, refresh: true }))
  await record('update conflict', () => client.index({ index, id: 'lorry', document: { n: 5 }, if_seq_no: 0, if_primary_term: 1 }))
  await record('create conflict', () => client.create({ index, id: 'lorry', document: { n: 5 } }))
  await record('delete', () => client.delete({ index, id: 'new', refresh: true }))
  await record('delete missing', () => client.delete({ index, id: 'new' }))
  await record('delete missing, ignored', () => client.delete({ index, id: 'new' }, { ignore: [404] }))

  await record('missing index', () => client.search({ index: 'akin-e2e-missing' }))
  await record('missing index, ignored', () => client.search({ index: 'akin-e2e-missing,akin-e2e-miss*', ignore_unavailable: true }))
  await record('bad query', () => client.search({ index, query: { no_such_query: {} } }))
  await record('bad value', () => client.search({ index, query: { match: { n: 'many' } } }))
  await record('headers', headers)
  await record('dated index', () => client.index({ index: dated, id: '1', document: { body: 'lorry' }, refresh: true }))
  await record('search dated index', () => client.search({ index: dated, query: { match: { body: 'lorry' } } }))
  await record('delete dated index', () => client.indices.delete({ index: `${index}-2026.01` }))
  await record('compressed car', compressed)
  await record('nodes', () => client.nodes.info({ metric: 'http' }))
  await record('sniffed', sniffed)
  await record("cluster's timeout", () => client.cluster.health({ wait_for_nodes: '5', timeout: '50ms', filter_path: 'timed_out' }))
  await record("client's timeout", () => client.cluster.health(
    { wait_for_nodes: '5', timeout: '5s' }, { requestTimeout: 300, maxRetries: 0 }
  ))
  await record('delete index', () => client.indices.delete({ index }))
  await client.close()
  console.log(JSON.stringify(steps))
}

main()
