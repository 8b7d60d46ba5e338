#!/usr/bin/env python3
"""Makes words.bin, the vectors of English words that akin contains, from the sentence model all-MiniLM-L6-v2.

    python3 -m venv venv
    venv/bin/pip install -r requirements.txt
    apt-get download scowl wordnet-base    # the word lists, of Debian 12
    for package in scowl_*.deb wordnet-base_*.deb; do dpkg -x $package lists; done
    venv/bin/python make.py --lists lists/usr/share --out words.bin

It takes some ten minutes of one processor.

1. The model splits words into pieces of its vocabulary. Each piece of letters and digits goes through the model alone, and each word of several
   pieces as a whole: the mean of the outputs is its vector. The words are those of SCOWL
   up to size 55, and up to size 70 if WordNet has them, too.
2. The pieces' vectors are changed so that the mean of a word's pieces comes near to the vector of the word (least squares with a penalty).
3. The words whose pieces still give them worst get rows of their own; what a word up to size 35 lacks counts double.
4. All rows are reduced to their principal components, and each number to four bits.

words.go describes the file and reads it.
"""
import argparse
import importlib.util
import json
import os
import re
import struct
import zipfile
import zlib

import numpy
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import cg
from scipy.special import erf
from tokenizers import Tokenizer

WIDTH, HEADS, LAYERS = 384, 12, 6  # of the model
FIRST, LAST = 101, 102  # the ids of [CLS] and [SEP], around each text
OFTEN, COMMON, KNOWN = 35, 55, 70  # sizes of SCOWL: of everyday words, of words that count, and of those that count if WordNet has them, too
BATCH = 2048  # pieces that go through the model at once

NOTICE = """Vectors of English words and word pieces, derived from the sentence model all-MiniLM-L6-v2 (sentence-transformers, Apache License 2.0): \
averaged, fitted, reduced to %d dimensions and quantized to 4 bits. The words are of SCOWL (Copyright 2000-2018 by Kevin Atkinson) and of \
WordNet 3.0 (Copyright 2006 by Princeton University). The file NOTICE of akin has their notices."""


class Model:
    """all-MiniLM-L6-v2, run by NumPy."""

    def __init__(self):
        package = importlib.util.find_spec("all_minilm_l6_v2").submodule_search_locations[0]
        with zipfile.ZipFile(os.path.join(package, "model.zip")) as archive:
            content = archive.read("model.safetensors")
            self.tokenizer = Tokenizer.from_str(archive.read("tokenizer.json").decode())
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        header = 8 + struct.unpack("<Q", content[:8])[0]
        self.weights = {}
        for name, at in json.loads(content[8:header]).items():
            if name != "__metadata__" and at["dtype"] == "F32":
                start, end = at["data_offsets"]
                numbers = numpy.frombuffer(content, numpy.float32, (end - start) // 4, header + start)
                self.weights[name.removeprefix("bert.")] = numbers.reshape(at["shape"])
        size = self.tokenizer.get_vocab_size()
        self.vocabulary = [self.tokenizer.id_to_token(i) for i in range(size)]

    def pieces(self, words):
        """The ids of each word's pieces."""
        return [e.ids for e in self.tokenizer.encode_batch(words, add_special_tokens=False)]

    def vectors(self, texts):
        """A row of WIDTH numbers for each text, a list of ids of pieces."""
        out, by_length = numpy.zeros((len(texts), WIDTH), numpy.float32), {}
        for i, ids in enumerate(texts):
            by_length.setdefault(len(ids), []).append(i)
        done = 0
        for length, group in sorted(by_length.items()):
            step = max(1, BATCH // (length + 2))
            for start in range(0, len(group), step):
                part = group[start:start + step]
                out[part] = self._run(numpy.array([[FIRST, *texts[i], LAST] for i in part])).mean(1)
                done += len(part)
                print(f"\r{done} of {len(texts)} texts", end="", flush=True)
        print()
        return out

    def _run(self, ids):
        w, (texts, length) = self.weights, ids.shape

        def linear(x, name):
            return x @ w[name + ".weight"].T + w[name + ".bias"]

        def normal(x, name):
            x = x - x.mean(-1, keepdims=True)
            return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * w[name + ".weight"] + w[name + ".bias"]

        def heads(x):
            return x.reshape(texts, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:length]
        x = normal(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            query, key, value = (heads(linear(x, at + "attention.self." + name)) for name in ("query", "key", "value"))
            scores = query @ key.transpose(0, 1, 3, 2) / numpy.float32((WIDTH // HEADS) ** 0.5)
            scores = numpy.exp(scores - scores.max(-1, keepdims=True))
            seen = scores / scores.sum(-1, keepdims=True) @ value
            seen = seen.transpose(0, 2, 1, 3).reshape(texts, length, WIDTH)
            x = normal(x + linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            inner = linear(x, at + "intermediate.dense")
            inner = (inner * 0.5 * (1 + erf(inner * numpy.float32(0.5 ** 0.5)))).astype(numpy.float32)
            x = normal(x + linear(inner, at + "output.dense"), at + "output.LayerNorm")
        return x


def scowl(folder):
    """Words by the smallest size of SCOWL that has them."""
    sizes = {}
    for name in sorted(os.listdir(folder)):
        kind, _, size = name.rpartition(".")
        if not re.fullmatch(r"(english|american|british|british_z|canadian|australian)-(words|upper)", kind) or int(size) > KNOWN:
            continue
        with open(os.path.join(folder, name), encoding="latin-1") as lines:
            for line in lines:
                word = line.strip().lower()
                if re.fullmatch("[a-z]+", word):
                    sizes[word] = min(int(size), sizes.get(word, KNOWN))
    return sizes


def wordnet(folder):
    """The single words of WordNet's indices."""
    words = set()
    for part in ("noun", "verb", "adj", "adv"):
        with open(os.path.join(folder, "index." + part), encoding="ascii") as lines:
            words.update(line.split(" ", 1)[0] for line in lines)
    return {word for word in words if re.fullmatch("[a-z]+", word)}


def fit(pieces, members, targets, vocabulary):
    """Pieces' vectors X that make |P X - targets|² + Σ μ |X - pieces|² least, where P takes the mean of a word's pieces. μ is 1 for a piece that
    begins words, and 0.3 for others, which say little alone."""
    rows = numpy.repeat(numpy.arange(len(members)), [len(ids) for ids in members])
    shares = numpy.concatenate([[1 / len(ids)] * len(ids) for ids in members])
    mean = csr_matrix((shares, (rows, numpy.concatenate(members))), shape=(len(members), len(vocabulary)))
    penalty = diags([0.3 if piece.startswith("##") else 1.0 for piece in vocabulary])
    left, right = (mean.T @ mean + penalty).tocsr(), mean.T @ (targets - mean @ pieces)
    change = numpy.stack([cg(left, column, maxiter=20)[0] for column in right.T], axis=1)
    fitted = (pieces + change).astype(numpy.float32)
    return fitted, mean @ fitted


def write(path, words, rows, notice):
    """Writes the file; words.go describes it."""
    order = sorted(range(len(words)), key=lambda i: words[i])
    rows, text, before = rows[order], bytearray(), b""
    for word in (words[i].encode("ascii") for i in order):
        shared = len(os.path.commonprefix([before, word]))
        text += bytes([shared, len(word) - shared]) + word[shared:]
        before = word
    scales = numpy.abs(rows).max(1) / 7
    unit = float(numpy.float32(scales.max())) / 65535
    units = numpy.maximum(numpy.round(scales / unit), 1).astype("<u2")
    numbers = numpy.clip(numpy.round(rows / (units[:, None] * unit)), -7, 7).astype(numpy.int8)
    packed = ((numbers[:, 0::2] & 15) | ((numbers[:, 1::2] & 15) << 4)).astype(numpy.uint8)
    packed = numpy.concatenate([units.view(numpy.uint8).reshape(-1, 2), packed], axis=1)
    notice = notice.encode()
    content = b"AKWV" + struct.pack("<BHIfH", 1, rows.shape[1], len(words), unit * 65535, len(notice)) + notice + bytes(text) + packed.tobytes()
    with open(path, "wb") as file:
        file.write(content + struct.pack("<I", zlib.crc32(content)))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lists", required=True, help="folder with dict/scowl and wordnet")
    options.add_argument("--out", required=True)
    options.add_argument("--dimensions", type=int, default=192)
    options.add_argument("--words", type=int, default=28500, help="how many words get rows of their own")
    options = options.parse_args()

    sizes, entries = scowl(os.path.join(options.lists, "dict/scowl")), wordnet(os.path.join(options.lists, "wordnet"))
    model = Model()
    plain = numpy.array([bool(re.fullmatch("(##)?[a-z0-9]+", piece)) for piece in model.vocabulary])
    words = sorted(word for word, size in sizes.items() if size <= COMMON or word in entries)
    several = [(word, ids) for word, ids in zip(words, model.pieces(words)) if len(ids) > 1 and plain[ids].all()]
    words, members = [word for word, _ in several], [ids for _, ids in several]
    print(plain.sum(), "pieces and", len(words), "words of several pieces", flush=True)

    alone = numpy.zeros((len(model.vocabulary), WIDTH), numpy.float32)
    alone[plain] = model.vectors([[i] for i in numpy.flatnonzero(plain)])
    whole = model.vectors(members)
    pieces, guesses = fit(alone, members, whole, model.vocabulary)

    def centered(rows):
        rows = rows - whole.mean(0)
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    cosines = (centered(guesses) * centered(whole)).sum(1)
    print("mean cosine of words with the mean of their pieces:", cosines.mean())
    lacks = (1 - cosines) * [2 if sizes[word] <= OFTEN else 1 for word in words]
    own = sorted(numpy.argsort(-lacks, kind="stable")[:options.words])
    common = [i for i in numpy.flatnonzero(plain) if sizes.get(model.vocabulary[i], COMMON + 1) <= COMMON]
    basis = numpy.concatenate([pieces[common], whole])
    center = basis.mean(0)
    axes = numpy.linalg.svd((basis - center).T @ (basis - center))[0][:, :options.dimensions]
    strings = [model.vocabulary[i] for i in numpy.flatnonzero(plain)] + [words[i] for i in own]
    rows = numpy.concatenate([pieces[plain], whole[own]])
    write(options.out, strings, (rows - center) @ axes, NOTICE % options.dimensions)
    print(options.out, len(strings), "rows,", os.path.getsize(options.out), "bytes")


if __name__ == "__main__":
    main()
