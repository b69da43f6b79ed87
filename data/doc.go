// Package data turns text on this machine into batches for a model that maps
// one sequence to another, or continues one.
//
// # From a spec to batches
//
// [Open] reads a corpus named by a spec: "go:doc" (doc comment to declaration,
// from the Go source tree of the local toolchain), "tsv:FILE", "mo:DIR" (GNU
// gettext catalogues) or "text:FILE". [TrainTokenizer] learns sub-words from
// its training part. A [Loader] joins the two. Nothing is downloaded, nothing
// is printed and no file is written: Corpus.Info says what was read.
//
//   - go:doc pairs every documented function, method and type of GOROOT/src
//     with its declaration on one line. Tests, testdata and vendored packages
//     are left out; bodies of structs and interfaces print as "{ ... }".
//   - tsv:FILE holds "source TAB target" on every line, in UTF-8. UTF-16, and whatever has
//     a byte of zero, is refused with its line, here and in all text.
//   - mo:DIR reads every *.mo file below DIR that is not hidden, msgid to msgstr. Contexts are
//     cut off and only the first form of a plural is kept. Messages that are
//     not translated, or not in UTF-8, are dropped and counted.
//   - text:FILE makes a language model's windows: every non-blank line is a
//     window, and each window is the source of the one after it. Its held-out
//     targets may occur in training as sources, never as targets of the same
//     source.
//
// The corpus stays in memory as text; Options.MaxPairs bounds it. go:doc and
// mo: visit files in the order of a hash of their paths, so any prefix of the
// corpus is a fair sample of the tree; tsv: and text: keep the file's order.
// Files are parsed on all cores and joined in order, so scheduling never shows.
// A pair that repeats an earlier one exactly is dropped. Info.SHA256 is of what is in the
// files, so that a run that goes on notices any edit.
//
// # Held-out pairs
//
// A pair is held out if the hash of its source falls in 1 of 50 classes, or in more
// of them for a larger Options.EvalShare, always in the same order. The
// choice depends on nothing else (no seed, no order, no other pair), so a
// rerun, a larger sample and a different machine agree, and pairs with the
// same source are always on the same side.
//
// # Sub-words
//
// The tokenizer is byte-level byte-pair encoding (Sennrich, Haddow and Birch,
// 2016; on bytes as in GPT-2): any string has an encoding and decodes to
// itself. Text is first cut into chunks, each a run of one class of bytes with
// the space before it and at most 64 bytes long; merges never cross chunks.
// The cap makes encoding linear in the text, however long its runs are, and
// bounds every token. Training keeps a table of distinct chunks with their
// frequencies, the count of every adjacent pair of symbols, and the chunks
// each pair occurs in; a heap yields the most frequent pair, and a merge
// touches only the chunks that hold it. Ties go to the smaller ids, so the
// result is a function of the text alone. About 8 MiB of text at most, spread
// evenly over the corpus, is looked at.
//
// [LearnTokenizer] learns of any texts, and cuts them as GPT-2 does: by a pattern
// that looks at classes of characters, keeps endings such as 's apart and gives a
// word the space before it. It can be saved as a tokenizer.json, the format of the
// Hugging Face libraries, and those of GPT-2, LLaMA 3, Qwen 2 and SmolLM can be read: with
// their added tokens, splits one after the other, by strings and by such regular expressions
// as Go's or GPT-2's, spaces put before texts, and forms that
// text is brought into (NFC and its like). A part that is of another kind is refused by its
// name. Chunks have no greatest length there; long ones are encoded with a heap of the
// merges that are possible, in time n·log n. Which tokens end a text the format does not
// say: they are guessed by their names, and [Tokenizer.Ending] tells who knows better.
//
// Vocabularies of characters can be read, too, as LLaMA 2, Mistral and Gemma have them of
// SentencePiece: a character that is no token is its bytes, tokens such as <0x0A>, or unknown.
// There the text of ids is no sum: bytes are a text together, and the space before the first
// word is taken away, so [Tokenizer.DecodeAfter] is told what is before, and
// [Tokenizer.Settled] which of them are a text already. Where two characters are together in
// nothing that a merge makes, texts are cut, so those without spaces take linear time as well.
//
// # Running text
//
// [OpenRunning] reads what a language model continues: a file, the text files of a
// folder, or the documented declarations of go:doc. Documents are cut into
// sections at ends of lines, and a section is held out if the hash of its text
// falls in 1 of 50 classes, or in more as of pairs. A [RunningLoader] puts all
// tokens one behind the other, with EOS between documents, and batches are windows
// of that; nothing is padded. [Running.Documents] is text as others evaluate it, in
// documents that are not cut.
// What is read of jsonl:FILE is documents that stay whole: a [PackedLoader] packs them into rows by
// best fit decreasing, as bins are packed (Johnson 1974), so that little is padding.
// Tokens are encoded when the loader is made, each chunk once for a MiB of text,
// and stay in memory, 4 bytes each.
//
// # Batches
//
// [Loader.Train] is a pure function of the corpus, the options and the step:
// each epoch orders the pairs by a keyed Feistel permutation, which is
// computed where it is needed and never stored. A run that resumes at step k
// sees what an uninterrupted one would have seen, and any number of
// goroutines may call it.
//
// Tokens are not stored either. A batch encodes its own few thousand tokens
// in a millisecond or so, far less than a training step, so the first batch
// waits for nothing, and the cost in memory is none. Only [Bucketed] mode looks
// ahead: to sort pairs by length it encodes all of them once, on all cores,
// and keeps one index a pair.
//
// # One's own examples
//
// [FromTensors] makes batches of tensors that are in memory, [FromFunc] of what a function
// returns: shuffled, with a part held out, and the last, smaller batch dropped or padded.
//
// What this package does not do: sub-word regularisation, vocabularies of other
// kinds than byte-level BPE, corpora larger than memory, or packing several pairs
// in a row.
package data
