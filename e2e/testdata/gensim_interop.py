"""The gensim side of gensim_test.go. Every command prints JSON."""

import json
import sys

import scipy.sparse
from gensim.corpora import Dictionary
from gensim.models import KeyedVectors
from gensim.similarities import SparseTermSimilarityMatrix, WordEmbeddingSimilarityIndex


def inner(matrix, pairs):
    """Print [xᵀSy, soft cosine of x and y] for each pair of lists of words."""
    entries = []
    with open(matrix, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            term, neighbor, similarity = line.rstrip("\n").split("\t")
            entries.append((term, neighbor, float(similarity)))
    with open(pairs, encoding="utf-8") as file:
        texts = json.load(file)
    words = {word for pair in texts for text in pair for word in text}
    dictionary = Dictionary([sorted(words.union(*(entry[:2] for entry in entries)))])
    ids = dictionary.token2id
    s = scipy.sparse.lil_matrix((len(ids), len(ids)))
    s.setdiag(1)
    for term, neighbor, similarity in entries:
        s[ids[term], ids[neighbor]] = similarity
    similarities = SparseTermSimilarityMatrix(s.tocsc())
    bags = [[dictionary.doc2bow(text) for text in pair] for pair in texts]
    return [
        [
            float(similarities.inner_product(x, y)),
            float(similarities.inner_product(x, y, normalized=(True, True))),
        ]
        for x, y in bags
    ]


def build(vectors, symmetric, limit, matrix):
    """Write gensim's matrix of a file of word vectors as a list, and print its rows."""
    keyed = KeyedVectors.load_word2vec_format(vectors)
    dictionary = Dictionary([keyed.index_to_key])
    similarities = SparseTermSimilarityMatrix(
        WordEmbeddingSimilarityIndex(keyed),
        dictionary,
        symmetric=symmetric == "symmetric",
        nonzero_limit=int(limit),
    )
    terms = [dictionary[index] for index in range(len(dictionary))]
    rows = {term: {} for term in terms}
    with open(matrix, "w", encoding="utf-8", newline="\n") as lines:
        for i, j, similarity in zip(*scipy.sparse.find(similarities.matrix)):
            # The ones of the diagonal name the terms that have no neighbor, too.
            lines.write(f"{terms[i]}\t{terms[j]}\t{similarity:.9f}\n")
            if i != j:
                rows[terms[i]][terms[j]] = float(similarity)
    return rows


def binary(vectors, out):
    """Write a text file of word vectors in the binary format, and print the number of words."""
    keyed = KeyedVectors.load_word2vec_format(vectors)
    keyed.save_word2vec_format(out, binary=True)
    return len(keyed)


if __name__ == "__main__":
    json.dump({"inner": inner, "build": build, "binary": binary}[sys.argv[1]](*sys.argv[2:]), sys.stdout)
