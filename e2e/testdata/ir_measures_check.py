"""Prints what ir_measures makes of qrels and a run: {query: {measure: value}}, 0 for queries without hits."""

import json
import sys

import ir_measures
from ir_measures import AP, P, R, RR, nDCG

NAMES = {AP: "MAP", RR: "MRR", nDCG @ 10: "nDCG@10", nDCG @ 3: "nDCG@3", P @ 5: "P@5", P @ 30: "P@30", R @ 20: "recall@20"}


def main(qrels_file, run_file):
    qrels = list(ir_measures.read_trec_qrels(qrels_file))
    values = {q.query_id: dict.fromkeys(NAMES.values(), 0.0) for q in qrels}
    for m in ir_measures.iter_calc(NAMES, qrels, ir_measures.read_trec_run(run_file)):
        values[m.query_id][NAMES[m.measure]] = m.value
    json.dump(values, sys.stdout)


main(*sys.argv[1:])
