"""Uses the Python client of OpenSearch as applications do, and prints what it answers."""

from opensearchpy import OpenSearch, helpers
from record import Recorder, arguments

URL, INDEX, FIXTURE = arguments()
ODD_ID = "a/b c%2F+ü?#&"
DATED = "<" + INDEX + "-{2026.01||/M{yyyy.MM}}>"
client = OpenSearch(URL)
record = Recorder()


def pages():
    """Read all documents about cars, two at a time, at one point in time."""
    pit = client.create_pit(index=INDEX, params={"keep_alive": "1m"})["pit_id"]
    body = {
        "pit": {"id": pit, "keep_alive": "1m"},
        "query": {"match": {"body": "car"}},
        "sort": [{"n": "asc"}],
        "size": 2,
    }
    found = []
    while hits := client.search(body=body)["hits"]["hits"]:
        found += hits
        body["search_after"] = hits[-1]["sort"]
    client.delete_pit(body={"pit_id": [pit]})
    return found


def scan(query):
    """Return the ids of all hits, read two at a time."""
    return sorted(hit["_id"] for hit in helpers.scan(client, index=INDEX, query={"query": query}, size=2))


def compressed():
    """Write and search with bodies that are compressed both ways."""
    with OpenSearch(URL, http_compress=True) as squeezed:
        documents = ({"_index": INDEX, "_id": f"gzip-{i}", "body": "zipped " * 50} for i in range(10))
        written = helpers.bulk(squeezed, documents, refresh=True)
        query = {"match": {"body": "car"}}
        answer = squeezed.search(index=INDEX, body={"query": query, "size": 30, "sort": ["_score", "n"]})
        return {"written": written, "answer": answer}


def sniffed():
    """Take the addresses of the nodes from the cluster."""
    with OpenSearch(URL, sniff_on_start=True, sniff_timeout=60) as sniffing:
        nodes = [connection.host for connection in sniffing.transport.connection_pool.connections]
        return {"nodes": nodes, "count": sniffing.count(index=INDEX)}


def search(body, index=INDEX, **options):
    """Call search later."""
    return lambda: client.search(index=index, body=body, **options)


record("ping", client.ping)
record("info", client.info)

record("exists before", lambda: client.indices.exists(index=INDEX))
record("create index", lambda: client.indices.create(index=INDEX, body=FIXTURE["definition"]))
record("create index again", lambda: client.indices.create(index=INDEX))
record("exists", lambda: client.indices.exists(index=INDEX))
record("mapping", lambda: client.indices.get_mapping(index=INDEX))

record("bulk helper", lambda: helpers.bulk(
    client, ({"_index": INDEX, "_id": d["id"], "_source": d["fields"]} for d in FIXTURE["documents"]), chunk_size=25,
))
record("bulk helper with failing items", lambda: helpers.bulk(
    client, [{"_index": INDEX, "_id": "bad", "n": "many"}], raise_on_error=False,
))
record("bulk with failing items", lambda: client.bulk(index=INDEX, body=[
    {"create": {"_id": "car"}}, {"n": 1},
    {"index": {"_id": "bad"}}, {"n": "many"},
    {"index": {"_id": ODD_ID}}, {"body": "odd", "n": 100},
    {"delete": {"_id": "nobody"}},
]))
record("refresh", lambda: client.indices.refresh(index=INDEX))

record("search car", search({
    "query": {"match": {"body": "car"}}, "size": 20, "sort": [{"_score": "desc"}, {"n": "asc"}],
    "_source": ["title", "n"], "highlight": {"fields": {"body": {}}}, "track_scores": True,
    "aggs": {"n": {"stats": {"field": "n"}}},
}))
record("search by parameters", lambda: client.search(index=INDEX, q="body:lorry", size=3, filter_path="hits.hits._id"))
record("search filler", search({
    "query": {"bool": {"must": {"match": {"body": "filler"}}, "filter": {"range": {"n": {"lt": 30}}}}},
    "aggs": {"tens": {"histogram": {"field": "n", "interval": 10}, "aggs": {"most": {"max": {"field": "n"}}}}},
    "timeout": "10s",
}, from_=5, size=3, sort="n", _source_excludes=["parts"], track_total_hits=10))
record("scan car", lambda: scan({"match": {"body": "car"}}))
record("scan all", lambda: scan({"match_all": {}}))
record("pages of car", pages)
record("msearch of car", lambda: client.msearch(body=[
    {"index": INDEX}, {"query": {"match": {"body": "car"}}, "sort": ["_score", "n"]},
    {"index": "akin-e2e-missing"}, {"query": {"match_all": {}}},
]))
record("msearch", lambda: client.msearch(index=INDEX, body=[
    {}, {"query": {"match": {"body": "lorry"}}},
    {"index": "akin-e2e-missing"}, {"query": {"match_all": {}}},
]))
record("count of car", lambda: client.count(index=INDEX, body={"query": {"match": {"body": "car"}}}))
record("count", lambda: client.count(index=INDEX))
record("async search", lambda: client.plugins.asynchronous_search.search(
    body={"query": {"match": {"body": "lorry"}}}, params={"index": INDEX, "wait_for_completion_timeout": "10s"},
))

record("get", lambda: client.get(index=INDEX, id="car"))
record("get with an odd id", lambda: client.get(index=INDEX, id=ODD_ID))
record("get source", lambda: client.get_source(index=INDEX, id="car-red", _source_includes="n"))
record("get missing", lambda: client.get(index=INDEX, id="nobody"))
record("mget", lambda: client.mget(index=INDEX, body={"ids": ["car", "nobody", ODD_ID]}))
record("exists document", lambda: client.exists(index=INDEX, id=ODD_ID))
record("exists no document", lambda: client.exists(index=INDEX, id="nobody"))
record("update", lambda: client.update(index=INDEX, id="lorry", body={"script": "ctx._source.n = 4000"}))
record("upsert", lambda: client.update(index=INDEX, id="new", body={"doc": {"n": 1}, "doc_as_upsert": True}, refresh=True))
record("update conflict", lambda: client.index(index=INDEX, id="lorry", body={"n": 5}, if_seq_no=0, if_primary_term=1))
record("create conflict", lambda: client.create(index=INDEX, id="lorry", body={"n": 5}))
record("delete", lambda: client.delete(index=INDEX, id="new", refresh=True))
record("delete missing", lambda: client.delete(index=INDEX, id="new"))
record("delete missing, ignored", lambda: client.delete(index=INDEX, id="new", ignore=404))

record("missing index", search({}, index="akin-e2e-missing"))
record("missing index, ignored", search({}, index="akin-e2e-missing,akin-e2e-miss*", ignore_unavailable=True))
record("bad query", search({"query": {"no_such_query": {}}}))
record("bad value", search({"query": {"match": {"n": "many"}}}))
record("headers", lambda: client.search(index=INDEX, size=0, headers={"X-Opaque-Id": "from-python"}))
record("dated index", lambda: client.index(index=DATED, id="1", body={"body": "lorry"}, refresh=True))
record("search dated index", search({"query": {"match": {"body": "lorry"}}}, index=DATED))
record("delete dated index", lambda: client.indices.delete(index=INDEX + "-2026.01"))
record("compressed car", compressed)
record("nodes", lambda: client.nodes.info(metric="http"))
record("sniffed", sniffed)
# The client takes an argument timeout for its own.
record("cluster's timeout", lambda: client.http.get("/_cluster/health?wait_for_nodes=5&timeout=50ms&filter_path=timed_out"))
record("client's timeout", lambda: client.http.get("/_cluster/health?wait_for_nodes=5&timeout=5s", params={"timeout": 0.3}))
record("delete index", lambda: client.indices.delete(index=INDEX))
record.print()
