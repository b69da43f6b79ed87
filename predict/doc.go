// Package predict runs trained models: it classifies pictures, transcribes
// recordings, draws samples, translates texts and continues them, under the same
// budgets and by the same verified plans as training.
//
// # Nets that answer at once
//
// A classifier, a recogniser and a generator are one execution of a graph that has
// nothing but what the answer is computed of ([models.Predictor]); [Net] keeps it
// with the weights of a checkpoint, fills batches and reads results. Such a plan has
// no gradients, no optimizer's state and nothing to keep for later, so it needs a
// small part of training's memory. Weights larger than the device stay on the host,
// or on a disk, and are staged operation by operation, as in training; that is the
// plan's matter and nothing here knows of it. What is predicted does not depend on
// the plan.
//
// # Texts
//
// A text is written token by token, and every token needs all before it. Running
// the whole text again for each would take time quadratic in its length, so a
// decoder ([models.Decoder]) keeps the keys and values of what it has seen in state
// variables, the caches, and an execution takes the new tokens only: [Texts]. A
// source text is encoded once. The caches are variables like others: a plan may
// keep them on the host and stage them.
//
// All rows of a batch are at the same position. Texts to be continued, which differ
// in length, begin together: while one writes, longer ones still read their
// prompts. So rows need neither padding on the left nor masks of their own, and no
// row's result depends on what is beside it.
//
// # Greedy, beams and sampling
//
// Greedy search takes the likeliest token each time. Beam search ([Search]) goes on
// with the best so many texts instead, in the sense of their log-probability, and of
// those that came to an end takes the best by log-probability over length penalty
// ((5+n)/6)^α, as Wu et al. (2016) have it; without a penalty (α = 0) short texts win,
// since every token makes a text less likely. Plain beam search can end with a worse
// text than greedy search, when what is likely later looks unlikely first. Here the
// greedy text always has a place in the beam, so by its own score a search is never
// worse than greedy; and a beam of 1 is greedy search.
//
// A search ends when so many texts as there are beams have, and nothing that is
// still alive could become better than the best: log-probabilities only fall.
//
// Sampling ([Sampling]) draws each token by its probability, made sharper or flatter
// by a temperature, among the likeliest k, or the fewest that together have a share p
// (nucleus sampling, Holtzman et al. 2020). What is drawn follows from the seed, the
// place of the text in the call, and the logits.
//
// # What this package does not do
//
// No repetition penalties, no constraints on what may be written, no diverse or
// stochastic beams, no speculative decoding. A text does not go on beyond the length
// that its decoder was built for: no window slides.
package predict
