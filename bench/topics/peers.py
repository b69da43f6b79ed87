"""Trains a topic model on documents of a file, a line of word numbers each, and writes its
topics' words as float64 [topics, words]. Prints CPU seconds of each pass over the documents."""
import sys
import time

import numpy

name, path, to = sys.argv[1:4]
topics, vocab, passes = (int(x) for x in sys.argv[4:7])
alpha, beta = float(sys.argv[7]), float(sys.argv[8])
docs = [line.split() for line in open(path)]

if name == "tomotopy":
    import tomotopy
    m = tomotopy.LDAModel(k=topics, alpha=alpha, eta=beta, seed=1)
    for d in docs:
        m.add_doc(d)
    m.optim_interval = 0
    m.train(0)
    began = time.process_time()
    m.train(passes, workers=1, show_progress=False)
    took = time.process_time() - began
    words = numpy.zeros((topics, vocab))
    at = [int(w) for w in m.used_vocabs]
    for k in range(topics):
        words[k, at] = m.get_topic_word_dist(k)
else:
    import gensim
    bags = []
    for d in docs:
        n = {}
        for w in d:
            n[int(w)] = n.get(int(w), 0) + 1
        bags.append(sorted(n.items()))
    began = time.process_time()
    m = gensim.models.LdaModel(bags, id2word={w: str(w) for w in range(vocab)}, num_topics=topics,
                               alpha=[alpha] * topics, eta=beta, passes=passes, random_state=1,
                               eval_every=None)
    took = time.process_time() - began
    words = m.get_topics()
numpy.asarray(words, dtype="<f8").tofile(to)
print(took)
