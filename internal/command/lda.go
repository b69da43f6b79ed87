package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/workload"
)

// ldaFlags are those of topics by latent Dirichlet allocation.
type ldaFlags struct {
	Alpha  positive `group:"model" placeholder:"X"`
	Beta   positive `group:"model" placeholder:"X"`
	Cycles count    `name:"mh-steps" group:"model" placeholder:"N"`
	Parts  count    `group:"job" placeholder:"N"`
	Block  count    `name:"block-tokens" group:"job" placeholder:"N"`
}

// given are the flags that are there, by name.
func (f ldaFlags) given() []option {
	return []option{{"alpha", f.Alpha > 0}, {"beta", f.Beta > 0}, {"mh-steps", f.Cycles > 0},
		{"parts", f.Parts > 0}, {"block-tokens", f.Block > 0}}
}

// ldaRun is what a directory of snapshots says of a topic model: what of it is not in its tables.
type ldaRun struct {
	Topics int      `json:"topics"`
	Alpha  float64  `json:"alpha"`
	Beta   float64  `json:"beta"`
	Cycles int      `json:"mh_steps"`
	Parts  int      `json:"parts"`
	Block  int      `json:"block_tokens"`
	Words  []string `json:"words,omitempty"` // by number; none: they have no names
}

// options are the model's.
func (r ldaRun) options(seed uint64, threads int) lda.Options {
	return lda.Options{Topics: r.Topics, Alpha: r.Alpha, Beta: r.Beta, Cycles: r.Cycles,
		Parts: r.Parts, BlockTokens: r.Block, Seed: seed, Threads: threads}
}

// blockTokens is how many words of documents a block has unless it is said.
const blockTokens = 1 << 20

// ldaRun is what flags say, and the usual of what they do not.
func (c *trainCmd) ldaRun() ldaRun {
	return ldaRun{Topics: cmp.Or(int(c.Topics), 20), Alpha: cmp.Or(float64(c.Alpha), 0.1),
		Beta: cmp.Or(float64(c.Beta), 0.01), Cycles: cmp.Or(int(c.Cycles), 2),
		Parts: cmp.Or(int(c.Parts), 4), Block: cmp.Or(int(c.Block), blockTokens)}
}

// adoptLDA takes the settings of a run that is gone on from. What flags say must be the same.
func (c *trainCmd) adoptLDA(run ldaRun) error {
	for _, f := range []struct {
		name string
		have *count
		kept int
	}{{"topics", &c.Topics, run.Topics}, {"mh-steps", &c.Cycles, run.Cycles},
		{"parts", &c.Parts, run.Parts},
		{"block-tokens", &c.Block, cmp.Or(run.Block, blockTokens)}} {
		if *f.have > 0 && int(*f.have) != f.kept {
			return fmt.Errorf("%s: the run there has --%s %d, not %d", c.Resume, f.name, f.kept,
				*f.have)
		}
		*f.have = count(f.kept)
	}
	for _, f := range []struct {
		name string
		have *positive
		kept float64
	}{{"alpha", &c.Alpha, run.Alpha}, {"beta", &c.Beta, run.Beta}} {
		if *f.have > 0 && float64(*f.have) != f.kept {
			return fmt.Errorf("%s: the run there has --%s %v, not %v", c.Resume, f.name, f.kept,
				float64(*f.have))
		}
		*f.have = positive(f.kept)
	}
	return nil
}

// served refuses flags that workers have no use for who share the word-topic table.
func (c *trainCmd) served(given map[string]bool) error {
	if name := firstGiven([]option{{"host-memory", c.HostBytes > 0}, {"disk", c.Disk != ""},
		{"block-tokens", given["block-tokens"]}, {"threads", c.Threads > 0}}); name != "" {
		return usagef("--%s does nothing with --sync %s, whose workers share the table and have "+
			"their documents in memory, a part a clock: want --sync rotate", name, c.Sync)
	}
	return nil
}

// topicsIn are the documents of a task that learns topics, nil if it does not.
func topicsIn(task runner) *workload.Topics {
	switch t := task.(type) {
	case *workload.Topics:
		return t
	case *workload.PLDA:
		return &t.Topics
	}
	return nil
}

// topWords is how many words of each topic are shown.
const topWords = 10

// words shows the topics that were learnt by their words.
func (c epochs) words(top [][]int, name func(int) string) error {
	if !c.json {
		fmt.Fprintln(c.w)
	}
	for k, words := range top {
		names := make([]string, len(words))
		for i, w := range words {
			names[i] = name(w)
		}
		if err := c.topic(k, names); err != nil {
			return err
		}
	}
	return nil
}

// topic shows one by its words.
func (c epochs) topic(k int, names []string) error {
	if c.json {
		return c.line(map[string]any{"type": "topic", "topic": k, "words": names})
	}
	text := fmt.Sprintf("topic %d ", k)
	for _, name := range names {
		if len(text)+1+len(name) > 80 {
			break
		}
		text += " " + name
	}
	_, err := fmt.Fprintln(c.w, text)
	return err
}

// learns has the topics of a model shown once they are learnt.
func (l *lesson) learns(task runner) {
	t := topicsIn(task)
	if t == nil {
		return
	}
	t.Learnt = func(table *lda.Table) {
		l.topics = func() error {
			return l.shows.words(table.Top(topWords), t.Train.Name)
		}
	}
}

// tableOf is the word-topic table of a run that is saved, and the numbers of its words.
func tableOf(from location, run tablesRun) (*lda.Table, map[string]uint32, error) {
	all, _, err := readTables(from)
	if err != nil {
		return nil, nil, err
	}
	m := all["lda/words"]
	if m == nil || m.cols != run.LDA.Topics {
		return nil, nil, fmt.Errorf("%s: no word-topic table of %d topics", from, run.LDA.Topics)
	}
	if names := len(run.LDA.Words); names != 0 && names != m.rows {
		return nil, nil, fmt.Errorf("%s: %d words have names, of %d", from, names, m.rows)
	}
	words := make([][]lda.Entry, m.rows)
	for i, n := range m.data {
		if n > 0 {
			w := i / m.cols
			words[w] = append(words[w], lda.Entry{Topic: uint16(i % m.cols), N: uint32(n)})
		}
	}
	numbers := map[string]uint32{}
	for w := range words {
		name := fmt.Sprint(w)
		if len(run.LDA.Words) > 0 {
			name = run.LDA.Words[w]
		}
		numbers[name] = uint32(w)
	}
	return lda.NewTable(words, run.LDA.options(run.Seed, 1)), numbers, nil
}

// topicShare is a topic and how much of a document it has.
type topicShare struct {
	Topic int     `json:"topic"`
	Share float64 `json:"share"`
}

// about is the largest of some numbers, such as a document's topics, most first.
func about(shares []float64, most int) []topicShare {
	all := make([]topicShare, len(shares))
	for k, x := range shares {
		all[k] = topicShare{k, x}
	}
	slices.SortStableFunc(all, func(a, b topicShare) int { return cmp.Compare(b.Share, a.Share) })
	return all[:min(most, len(all))]
}

// topics says what each line of the inputs is about.
func (c *predictCmd) topics(e *env, run tablesRun, r *reply) error {
	table, numbers, err := tableOf(c.From, run)
	if err != nil {
		return err
	}
	lines := newLineReader(c.Inputs, e.stdin, maxLine)
	for q, ok := lines.one(); ok; q, ok = lines.one() {
		if q.Err != nil {
			r.fail(q.Input, q.Line, q.Err)
			continue
		}
		var words []uint32
		for _, name := range lda.Words(q.Value) {
			if w, ok := numbers[name]; ok {
				words = append(words, w)
			}
		}
		top := about(table.Topics(words), cmp.Or(int(c.Top), 3))
		text := ""
		for _, t := range top {
			text += fmt.Sprintf("%d:%.3f ", t.Topic, t.Share)
		}
		r.show(map[string]any{"type": "topics", "input": q.Input, "line": q.Line,
			"known": len(words), "topics": top}, strings.TrimRight(text, " ")+"\n")
	}
	return nil
}
