package command

import (
	"fmt"
	"runtime/debug"

	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/workload"
)

// ldaMemory is what a topic model takes of memory and of the disk that documents are on.
type ldaMemory struct {
	lda.Bytes
	budget, disk int64 // budget 0: there is none
	dir          string
}

// budgeted is what a task takes, nil if its documents are in memory: it has no budget then. A
// budget that is too small is refused.
func budgeted(c *trainCmd, t *workload.Topics, w World) (*ldaMemory, error) {
	dir, ok := t.Train.Shelf()
	if !ok {
		return nil, nil
	}
	use := lda.Use{Rank: w.Rank, Workers: w.Size, Held: t.Test,
		Kept: c.Save != "" || c.Resume != "" || c.Min > 0}
	const tokenBytes = 6 // a word, and its topic
	m := &ldaMemory{t.Train.Bytes(t.Model, use), int64(c.HostBytes),
		tokenBytes * int64(t.Train.Tokens()), dir}
	if m.budget == 0 || m.Total() <= m.budget {
		return m, nil
	}
	text := fmt.Sprintf("--host-memory %s is too little for %s of %s words: want %s",
		size(m.budget), counted(t.Model.Topics, "topic"), grouped(int64(t.Train.Vocab)),
		atLeast(m.Total()))
	if o, ok := t.Train.Fitting(t.Model, use, m.budget); ok {
		return nil, fmt.Errorf("%s, or --block-tokens %d", text, o.BlockTokens)
	}
	use.Kept = false
	if n := t.Train.Bytes(t.Model, use).Total(); n < m.Total() {
		return nil, fmt.Errorf("%s, or %s without --save, --resume and --min", text, atLeast(n))
	}
	return nil, fmt.Errorf("%s", text)
}

// atLeast is a number of bytes as flags take it, rounded up.
func atLeast(bytes int64) string {
	const unit = 1 << 20
	return fmt.Sprintf("%dMiB", (bytes+unit-1)/unit)
}

// unlessNone is a number of bytes, "" for none.
func unlessNone(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return size(bytes)
}

// limited has the program give memory back before it takes more than a budget, and undoes that.
func (m *ldaMemory) limited() (undo func()) {
	if m == nil || m.budget == 0 {
		return func() {}
	}
	before := debug.SetMemoryLimit(m.budget)
	return func() { debug.SetMemoryLimit(before) }
}

// memory shows what a topic model takes at most.
func (c epochs) memory(m *ldaMemory) error {
	if c.json {
		return c.line(map[string]any{"type": "memory", "corpora_bytes": m.Corpora,
			"blocks_bytes": m.Blocks, "table_bytes": m.Table, "proposals_bytes": m.Proposals,
			"result_bytes": m.Result, "sent_bytes": m.Sent, "kept_bytes": m.Kept,
			"rest_bytes": m.Rest, "total_bytes": m.Total(), "host_budget_bytes": m.budget,
			"disk_bytes": m.disk, "disk": m.dir})
	}
	of := ""
	if m.budget > 0 {
		of = " of " + size(m.budget)
	}
	printFields(c.w, []field{{"memory", size(m.Total()) + of + " at most"},
		{"  documents", fmt.Sprintf("%s of blocks, %s of where they are and of names",
			size(m.Blocks), size(m.Corpora))},
		{"  words", fmt.Sprintf("%s of topics, %s of alias tables and lists, %s at the end",
			size(m.Table), size(m.Proposals), size(m.Result))},
		{"  sent", unlessNone(m.Sent)}, {"  kept", unlessNone(m.Kept)},
		{"  the rest", size(m.Rest)},
		{"disk", fmt.Sprintf("%s of documents and topics in %s", size(m.disk), m.dir)}})
	_, err := fmt.Fprintln(c.w)
	return err
}
