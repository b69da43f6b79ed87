// Package lda finds the topics of documents: latent Dirichlet allocation (Blei, Ng and Jordan
// 2003), by the sampler of LightLDA (Yuan et al. 2015) and by its schedule, section 4.1 of
// J. Wei's thesis (2019).
//
// Each of N tokens, a word w of V in a document d, has a topic z of K. Three tables count them:
// n(d,k) of a document by topic, n(w,k) of a word, the word-topic table, and n(k) of all, the
// topic summary. With priors alpha and beta, and all counts without the token itself, its topic
// given all others is k with a probability in proportion to
//
//	π(k) = (n(d,k) + alpha) (n(w,k) + beta) / (n(k) + V beta)
//
// A Gibbs sampler draws from that in K steps. This one takes a number of steps that does not
// depend on K: it proposes a topic t to a token that has s, by a distribution q that is cheap to
// draw from, and accepts it with probability min(1, π(t) q(s) / (π(s) q(t))) (Metropolis,
// Hastings). Two proposals alternate, each so often a sweep as [Options].Cycles says:
//
//   - Word: q(k) is in proportion to m(w,k) + beta, where m is n(w,k) as it was when a visit
//     first came to the word. Of a heavy word, one with at least four tokens a topic, it is drawn
//     from an alias table, in whole numbers; of a light one from a list of its tokens' topics.
//     Accepted with
//
//     (n(d,t) + alpha) (n(w,t) + beta) (n(s) + V beta) (m(w,s) + beta) /
//     (n(d,s) + alpha) (n(w,s) + beta) (n(t) + V beta) (m(w,t) + beta)
//
//   - Document: the topic of a token of the document, drawn among all of them and alpha for each
//     topic. From s, t is proposed in proportion to n(d,t) and alpha, and the other way round
//     n(d,s) and alpha: both cancel what is in π of the document. Accepted with
//
//     (n(w,t) + beta) (n(s) + V beta) / (n(w,s) + beta) (n(t) + V beta)
//
// LightLDA's formulas differ in two places. Its word proposal is divided by n(k) + V beta, which
// costs an alias table whenever the summary changes, and makes no difference in what is sampled.
// And the counts that it proposes by have the token in them: n(d,s) is one more than n(d,s)
// without the token, and m(w,s), too. Then what is proposed depends on where the token is, which
// a ratio of fixed q does not know. Detailed balance is off by up to 0.77 on corpora of three
// tokens (see TestDetailedBalance), and the likelihood of a drawn corpus ends 0.3 % too high.
// Here a token is left out of all counts while it is sampled, and a proposal by the entry that is
// its own in a word's list is none. All transitions are in balance to 1e-14.
//
// # Schedule
//
// Documents are divided into P parts, and words into 2P slices; both lie together, and have about
// as many tokens each. In step s of 2P, part p visits slice 2p + s, modulo their number: no two
// parts have a document or a word in common, so what they do at the same time does not conflict.
// What part p visits in a step, part p+1 has visited two steps before: while one slice is visited
// the next one is on its way (Orion's figure 5.13). If workers have several parts each, most slices
// stay where they are, and a worker sends one to its predecessor in a step. The summary alone is
// used by all. Each part has a copy, in which its own changes are; those that others make in two
// steps come to it two steps later, when it is sure to have them, and none of later ones does.
//
// So the result depends on the number of parts, and on nothing else: any number of threads and of
// workers up to it leaves the same bits. Random numbers are drawn for a document, a slice and a
// sweep, by a sequence of their own.
//
// Documents of a part are blocks, of which one of each part is sampled at a time, in all slices,
// before the next: what has to be in memory are these, and the tables. A corpus that is [Shelved]
// has its words in a file, and a model the topics in another one. Of each part, two blocks are in
// memory: while one is sampled, the one before it is written back and the next one is read in its
// place. [Corpus.Bytes] says what all of it takes at most.
package lda
