"""Uses the Python client of Elasticsearch as applications do, and prints what it answers."""

from elasticsearch import Elasticsearch, helpers
from record import Recorder, arguments

URL, INDEX, FIXTURE = arguments()
ODD_ID = "a/b c%2F+ü?#&"
DATED = "<" + INDEX + "-{2026.01||/M{yyyy.MM}}>"
client = Elasticsearch(URL)
record = Recorder()


def pages():
    """Read all documents about cars, two at a time, at one point in time."""
    pit = client.open_point_in_time(index=INDEX, keep_alive="1m")["id"]
    found, after = [], None
    while True:
        answer = client.search(
            pit={"id": pit, "keep_alive": "1m"},
            query={"match": {"body": "car"}},
            sort=[{"n": "asc"}, "_shard_doc"],
            search_after=after,
            size=2,
        )
        hits = answer["hits"]["hits"]
        if not hits:
            break
        found += hits
        after, pit = hits[-1]["sort"], answer["pit_id"]
    return {"hits": found, "closed": client.close_point_in_time(id=pit).body}


def scan(query):
    """Return the ids of all hits, read two at a time."""
    return sorted(hit["_id"] for hit in helpers.scan(client, index=INDEX, query={"query": query}, size=2))


def compressed():
    """Write and search with bodies that are compressed both ways."""
    with Elasticsearch(URL, http_compress=True) as squeezed:
        documents = ({"_index": INDEX, "_id": f"gzip-{i}", "body": "zipped " * 50} for i in range(10))
        written = helpers.bulk(squeezed, documents, refresh=True)
        answer = squeezed.search(index=INDEX, query={"match": {"body": "car"}}, size=30, sort=["_score", "n"])
        return {"written": written, "answer": answer.body, "encoding": answer.meta.headers.get("content-encoding")}


def sniffed():
    """Take the addresses of the nodes from the cluster."""
    with Elasticsearch(URL, sniff_on_start=True, sniff_timeout=60) as sniffing:
        nodes = [node.base_url for node in sniffing.transport.node_pool.all() if node.base_url != URL]
        return {"nodes": nodes, "count": sniffing.count(index=INDEX).body}


def headers():
    """Send a header of one's own and return the answer's."""
    answer = client.options(headers={"X-Opaque-Id": "from-python"}).search(index=INDEX, size=0)
    return {name: answer.meta.headers.get(name) for name in ("x-opaque-id", "x-elastic-product", "content-type")}


record("ping", client.ping)
record("info", client.info)

record("exists before", lambda: client.indices.exists(index=INDEX))
record("create index", lambda: client.indices.create(index=INDEX, **FIXTURE["definition"]))
record("create index again", lambda: client.indices.create(index=INDEX))
record("exists", lambda: client.indices.exists(index=INDEX))
record("mapping", lambda: client.indices.get_mapping(index=INDEX))

record("bulk helper", lambda: helpers.bulk(
    client, ({"_index": INDEX, "_id": d["id"], "_source": d["fields"]} for d in FIXTURE["documents"]), chunk_size=25,
))
record("bulk helper with failing items", lambda: helpers.bulk(
    client, [{"_index": INDEX, "_id": "bad", "n": "many"}], raise_on_error=False,
))
record("bulk with failing items", lambda: client.bulk(index=INDEX, operations=[
    {"create": {"_id": "car"}}, {"n": 1},
    {"index": {"_id": "bad"}}, {"n": "many"},
    {"index": {"_id": ODD_ID}}, {"body": "odd", "n": 100},
    {"delete": {"_id": "nobody"}},
]))
record("refresh", lambda: client.indices.refresh(index=INDEX))

record("search car", lambda: client.search(
    index=INDEX, query={"match": {"body": "car"}}, size=20, sort=[{"_score": "desc"}, {"n": "asc"}],
    source=["title", "n"], highlight={"fields": {"body": {}}}, track_scores=True, track_total_hits=True,
    aggs={"n": {"stats": {"field": "n"}}},
))
record("search by parameters", lambda: client.search(index=INDEX, q="body:lorry", size=3, filter_path="hits.hits._id"))
record("search filler", lambda: client.search(
    index=INDEX, query={"bool": {"must": {"match": {"body": "filler"}}, "filter": {"range": {"n": {"lt": 30}}}}},
    from_=5, size=3, sort=["n"], source_excludes=["parts"], track_total_hits=10, timeout="10s",
    aggs={"tens": {"histogram": {"field": "n", "interval": 10}, "aggs": {"most": {"max": {"field": "n"}}}}},
))
record("scan car", lambda: scan({"match": {"body": "car"}}))
record("scan all", lambda: scan({"match_all": {}}))
record("pages of car", pages)
record("msearch of car", lambda: client.msearch(searches=[
    {"index": INDEX}, {"query": {"match": {"body": "car"}}, "sort": ["_score", "n"]},
    {"index": "akin-e2e-missing"}, {"query": {"match_all": {}}},
]))
record("msearch", lambda: client.msearch(index=INDEX, searches=[
    {}, {"query": {"match": {"body": "lorry"}}},
    {"index": "akin-e2e-missing"}, {"query": {"match_all": {}}},
]))
record("count of car", lambda: client.count(index=INDEX, query={"match": {"body": "car"}}))
record("count", lambda: client.count(index=INDEX))
record("async search", lambda: client.async_search.submit(
    index=INDEX, query={"match": {"body": "lorry"}}, wait_for_completion_timeout="10s",
))

record("get", lambda: client.get(index=INDEX, id="car"))
record("get with an odd id", lambda: client.get(index=INDEX, id=ODD_ID))
record("get source", lambda: client.get_source(index=INDEX, id="car-red", source_includes="n"))
record("get missing", lambda: client.get(index=INDEX, id="nobody"))
record("mget", lambda: client.mget(index=INDEX, ids=["car", "nobody", ODD_ID]))
record("exists document", lambda: client.exists(index=INDEX, id=ODD_ID))
record("exists no document", lambda: client.exists(index=INDEX, id="nobody"))
record("update", lambda: client.update(index=INDEX, id="lorry", doc={"n": 4000}))
record("upsert", lambda: client.update(index=INDEX, id="new", doc={"n": 1}, doc_as_upsert=True, refresh=True))
record("update conflict", lambda: client.index(index=INDEX, id="lorry", document={"n": 5}, if_seq_no=0, if_primary_term=1))
record("create conflict", lambda: client.create(index=INDEX, id="lorry", document={"n": 5}))
record("delete", lambda: client.delete(index=INDEX, id="new", refresh=True))
record("delete missing", lambda: client.delete(index=INDEX, id="new"))
record("delete missing, ignored", lambda: client.options(ignore_status=404).delete(index=INDEX, id="new"))

record("missing index", lambda: client.search(index="akin-e2e-missing", query={"match_all": {}}))
record("missing index, ignored", lambda: client.search(index="akin-e2e-missing,akin-e2e-miss*", ignore_unavailable=True))
record("bad query", lambda: client.search(index=INDEX, query={"no_such_query": {}}))
record("bad value", lambda: client.search(index=INDEX, query={"match": {"n": "many"}}))
record("headers", headers)
record("dated index", lambda: client.index(index=DATED, id="1", document={"body": "lorry"}, refresh=True))
record("search dated index", lambda: client.search(index=DATED, query={"match": {"body": "lorry"}}))
record("delete dated index", lambda: client.indices.delete(index=INDEX + "-2026.01"))
record("compressed car", compressed)
record("nodes", lambda: client.nodes.info(metric="http"))
record("sniffed", sniffed)
record("cluster's timeout", lambda: client.cluster.health(wait_for_nodes="5", timeout="50ms", filter_path="timed_out"))
record("client's timeout", lambda: client.options(request_timeout=0.3).cluster.health(wait_for_nodes="5", timeout="5s"))
record("delete index", lambda: client.indices.delete(index=INDEX))
record.print()
