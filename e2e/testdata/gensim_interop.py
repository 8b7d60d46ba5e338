"""The gensim side of gensim_test.go. Every command prints JSON."""

import json
import sys

import scipy.io
from gensim.corpora import Dictionary
from gensim.models import KeyedVectors
from gensim.similarities import SparseTermSimilarityMatrix, WordEmbeddingSimilarityIndex


def inner(matrix, vocabulary, pairs):
    """Print [xᵀSy, soft cosine of x and y] for each pair of lists of words."""
    with open(vocabulary, encoding="utf-8", newline="\n") as lines:
        terms = [line.rstrip("\n").split("\t")[0] for line in lines]
    dictionary = Dictionary.from_documents([terms])
    dictionary.token2id = {term: index for index, term in enumerate(terms)}
    similarities = SparseTermSimilarityMatrix(scipy.io.mmread(matrix))
    with open(pairs, encoding="utf-8") as file:
        bags = [[dictionary.doc2bow(words) for words in pair] for pair in json.load(file)]
    return [
        [
            float(similarities.inner_product(x, y)),
            float(similarities.inner_product(x, y, normalized=(True, True))),
        ]
        for x, y in bags
    ]


def build(vectors, symmetric, limit, matrix, vocabulary):
    """Write gensim's matrix of a file of word vectors and its vocabulary, and print its rows."""
    keyed = KeyedVectors.load_word2vec_format(vectors)
    dictionary = Dictionary([keyed.index_to_key])
    similarities = SparseTermSimilarityMatrix(
        WordEmbeddingSimilarityIndex(keyed),
        dictionary,
        symmetric=symmetric == "symmetric",
        nonzero_limit=int(limit),
    )
    scipy.io.mmwrite(matrix, similarities.matrix)
    terms = [dictionary[index] for index in range(len(dictionary))]
    with open(vocabulary, "w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(f"{term}\t{dictionary.dfs[index]}\n" for index, term in enumerate(terms))
    rows = {term: {} for term in terms}
    for i, j, similarity in zip(*scipy.sparse.find(similarities.matrix)):
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
