"""Compares akin with gensim and NumPy at finding the 100 nearest words of each.

All start from the same words and vectors and must find the same neighbors:
akin and gensim from the same file, NumPy from memory. `make bench-gensim` runs
it.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import numpy as np
from gensim.corpora import Dictionary
from gensim.models import KeyedVectors
from gensim.similarities import SparseTermSimilarityMatrix, WordEmbeddingSimilarityIndex

DIMENSIONS = 100
NEIGHBORS = 100
POWER = 2
BLOCK = 512, 2048  # rows and columns of a product: several times faster than whole rows, which do not fit into the cache


def make_vectors(words):
    """Returns vectors that resemble those of words: topics around fewer themes,
    most of the variance in few dimensions, and a common direction."""
    random = np.random.default_rng(1)
    spread = 1 / np.sqrt(1 + np.arange(DIMENSIONS))

    def draw(n):
        return random.standard_normal((n, DIMENSIONS)) * spread

    themes = 0.8 * draw(4 + words // 500) + 0.3 * draw(1)
    topics = draw(4 + words // 20) + themes[random.integers(0, len(themes), 4 + words // 20)]
    return (draw(words) + topics[random.integers(0, len(topics), words)]).astype(np.float32)


def write_vectors(path, vectors):
    """Writes the vectors in the text format of word2vec, words in byte order."""
    line = "w%07d" + " %.6f" * DIMENSIONS + "\n"
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{len(vectors)} {DIMENSIONS}\n")
        for i, vector in enumerate(vectors):
            file.write(line % (i, *vector))


def read_matrix(path):
    """Returns the rows of a matrix file of akin as columns and similarities,
    in descending order, both padded with -1 and 0. The format is described in
    simmatrix/file.go."""
    data = path.read_bytes()
    assert data[:8] == b"akin-S\r\n"
    _, size = np.frombuffer(data, "<u4", 2, 8)
    header = json.loads(data[16 : 16 + size])
    words, entries = header["terms"], header["non_zeros"]
    at = int(16 + size)

    def numbers(kind, count):
        nonlocal at
        found = np.frombuffer(data, kind, count, at)
        at += found.nbytes
        return found

    numbers("u1", int(numbers("<u2", words).sum()))  # the terms
    numbers("<u4", words)  # their document frequencies
    counts = numbers("<u2", words)
    there = np.arange(NEIGHBORS) < counts[:, None]
    columns = np.full((words, NEIGHBORS), -1)
    similarities = np.zeros((words, NEIGHBORS))
    columns[there] = numbers("<u4", entries)
    similarities[there] = numbers("<u2", entries) / 65535
    return columns, similarities


def rows_of(matrix):
    """Returns the columns of a gensim matrix, like read_matrix."""
    matrix = matrix.tocsc()
    columns = np.full((matrix.shape[0], NEIGHBORS), -1)
    similarities = np.zeros((matrix.shape[0], NEIGHBORS))
    for i in range(matrix.shape[0]):
        at = slice(matrix.indptr[i], matrix.indptr[i + 1])
        found, values = matrix.indices[at], matrix.data[at]
        found, values = found[found != i], values[found != i]
        order = np.argsort(-values)
        columns[i, : len(order)], similarities[i, : len(order)] = found[order], values[order]
    return columns, similarities


def run_akin(akin, vectors, out):
    command = [akin, "matrix", "build", "--from-vectors", vectors, "--top", NEIGHBORS, "--power", POWER, "--out", out]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_gensim(vectors):
    model = KeyedVectors.load_word2vec_format(vectors)
    index = WordEmbeddingSimilarityIndex(model, threshold=0.0, exponent=POWER)
    words = Dictionary([model.index_to_key])
    return SparseTermSimilarityMatrix(index, words, symmetric=False, dominant=False, nonzero_limit=NEIGHBORS).matrix


def multiply(rows, columns, out):
    """Sets out to the product, block by block."""
    for at in range(0, columns.shape[1], BLOCK[1]):
        part = columns[:, at : at + BLOCK[1]]
        np.matmul(rows, part, out=out[: len(rows), at : at + part.shape[1]])


def run_product(unit):
    """Computes all cosines and discards them."""
    columns, cosines = np.ascontiguousarray(unit.T), np.empty(BLOCK, np.float32)
    for lo in range(0, len(unit), BLOCK[0]):
        for at in range(0, len(unit), BLOCK[1]):
            multiply(unit[lo : lo + BLOCK[0]], columns[:, at : at + BLOCK[1]], cosines)


def run_numpy(unit):
    """Returns the nearest of each row, in descending order, and their cosines."""
    columns, cosines = np.ascontiguousarray(unit.T), np.empty((BLOCK[0], len(unit)), np.float32)
    nearest = np.empty((len(unit), NEIGHBORS), np.int64)
    best = np.empty((len(unit), NEIGHBORS), np.float32)
    for lo in range(0, len(unit), BLOCK[0]):
        block = unit[lo : lo + BLOCK[0]]
        multiply(block, columns, cosines)
        rows = cosines[: len(block)]
        rows[np.arange(len(block)), np.arange(lo, lo + len(block))] = -2  # not itself
        top = np.argpartition(rows, -NEIGHBORS, axis=1)[:, -NEIGHBORS:]
        values = np.take_along_axis(rows, top, axis=1)
        order = np.argsort(-values, axis=1)
        nearest[lo : lo + len(block)] = np.take_along_axis(top, order, axis=1)
        best[lo : lo + len(block)] = np.take_along_axis(values, order, axis=1)
    return nearest, best


def check(name, found, unit, nearest, best):
    """Checks that the found neighbors are the nearest: their similarities are right,
    and a neighbor that NumPy lacks is as near as NumPy's last one."""
    columns, similarities = found
    want = np.maximum(best, 0).astype(float) ** POWER
    off = np.abs(similarities - want).max()
    assert off < 1 / 65535, f"{name}: a similarity is off by {off}"  # akin's are multiples of 1/65535
    others = 0
    for i, (row, true) in enumerate(zip(columns, nearest)):
        more = np.setdiff1d(row[row >= 0], true)
        others += len(more)
        assert (unit[more] @ unit[i] > best[i, -1] - 1e-5).all(), f"{name}: row {i} has neighbors that are not the nearest"
    print(f"{name} found the same {(columns >= 0).sum():,} neighbors as NumPy, {others:,} of them others as near", flush=True)


def timed(name, run, *args):
    start = time.perf_counter()
    result = run(*args)
    seconds = time.perf_counter() - start
    print(f"{seconds:9.2f} s  {name}", flush=True)
    return result, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--akin", type=Path, default=Path("bin/akin"))
    parser.add_argument("--folder", type=Path, required=True, help="where the files go")
    parser.add_argument("--words", type=int, default=100_000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file, out = options.folder / f"vectors-{options.words}.txt", options.folder / "matrix.akin"
    write_vectors(file, make_vectors(options.words))
    model = KeyedVectors.load_word2vec_format(file)
    unit = model.vectors / np.linalg.norm(model.vectors, axis=1, keepdims=True)

    print(f"{options.words:,} words, {DIMENSIONS} dimensions, {NEIGHBORS} neighbors, {os.cpu_count()} processors", flush=True)
    akin = product = float("inf")
    for _ in range(3):  # alternate, and take the best of each, in case others use the machine
        akin = min(akin, timed("akin matrix build, from file to file", run_akin, options.akin, file, out)[1])
        product = min(product, timed("NumPy's blocked product alone, in memory", run_product, unit)[1])
    (nearest, best), whole = timed("NumPy's blocked product with argpartition, in memory", run_numpy, unit)
    check("akin", read_matrix(out), unit, nearest, best)
    matrix, gensim = timed("gensim's SparseTermSimilarityMatrix, from file to memory", run_gensim, file)
    check("gensim", rows_of(matrix), unit, nearest, best)
    print(f"akin takes {akin / product:.2f} times as long as the product alone and {akin / whole:.2f} times as long "
          f"as NumPy with argpartition; gensim takes {gensim / akin:.1f} times as long as akin")


if __name__ == "__main__":
    main()
