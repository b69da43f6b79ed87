package command

import (
	"fmt"
	"runtime/debug"

	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/workload"
)

// ldaMemory is what a worker of a topic model takes of memory and of the disk that documents are
// on, and what a sweep moves.
type ldaMemory struct {
	lda.Bytes
	lda.Traffic
	budget int64 // 0: there is none
	dir    string
}

// budgeted is what a task takes, nil if its documents are in memory: it has no budget then. A
// budget that is too small is refused.
func budgeted(c *trainCmd, t *workload.Topics, w World) (*ldaMemory, error) {
	dir, ok := t.Train.Shelf()
	if !ok {
		return nil, nil
	}
	return memoryOf(t.Train, t.Model, lda.Use{Rank: w.Rank, Workers: w.Size, Held: t.Test,
		Kept: c.Save != "" || c.Resume != "" || c.Min > 0}, int64(c.HostBytes), dir)
}

// memoryOf is what a model of a corpus on a shelf takes, which has to be within a budget, 0: any.
func memoryOf(c *lda.Corpus, o lda.Options, use lda.Use, budget int64, dir string) (*ldaMemory,
	error) {
	m := &ldaMemory{c.Bytes(o, use), c.Traffic(o, use), budget, dir}
	if m.budget == 0 || m.Total() <= m.budget {
		return m, nil
	}
	text := fmt.Sprintf("--host-memory %s is too little for %s of %s words: want %s",
		size(m.budget), counted(o.Topics, "topic"), grouped(int64(c.Vocab)), atLeast(m.Total()))
	if o, ok := c.Fitting(o, use, m.budget); ok {
		return nil, fmt.Errorf("%s, or --block-tokens %d", text, o.BlockTokens)
	}
	use.Kept = false
	if n := c.Bytes(o, use).Total(); n < m.Total() {
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
		return c.line(m.line())
	}
	printFields(c.w, m.fields())
	_, err := fmt.Fprintln(c.w)
	return err
}

// line is what is taken, as JSON has it.
func (m *ldaMemory) line() map[string]any {
	return map[string]any{"type": "memory", "corpora_bytes": m.Corpora, "blocks_bytes": m.Blocks,
		"table_bytes": m.Table, "proposals_bytes": m.Proposals, "result_bytes": m.Result,
		"sent_bytes": m.Bytes.Sent, "kept_bytes": m.Kept, "rest_bytes": m.Rest,
		"total_bytes": m.Total(), "host_budget_bytes": m.budget, "disk_bytes": m.Disk,
		"disk": m.dir, "streamed_bytes": m.Streamed, "rotated_bytes": m.Traffic.Sent}
}

// fields are what is taken, in words.
func (m *ldaMemory) fields() []field {
	of := ""
	if m.budget > 0 {
		of = " of " + size(m.budget)
	}
	disk := size(m.Disk) + " of documents and topics"
	if m.dir != "" {
		disk += " in " + m.dir
	}
	sweep := size(m.Streamed) + " read and written"
	if m.Traffic.Sent > 0 {
		sweep += fmt.Sprintf(", %s sent at most", size(m.Traffic.Sent))
	}
	return []field{{"memory", size(m.Total()) + of + " at most"},
		{"  documents", fmt.Sprintf("%s of blocks, %s of where they are and of names",
			size(m.Blocks), size(m.Corpora))},
		{"  words", fmt.Sprintf("%s of topics, %s of alias tables and lists, %s at the end",
			size(m.Table), size(m.Proposals), size(m.Result))},
		{"  sent", unlessNone(m.Bytes.Sent)}, {"  kept", unlessNone(m.Kept)},
		{"  the rest", size(m.Rest)},
		{"disk", disk}, {"an epoch", sweep}}
}
