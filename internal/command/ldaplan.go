package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gomem/gomem/distrib/lda"
)

// corpusFlags say for which documents topics are planned.
type corpusFlags struct {
	Data   location `group:"data" placeholder:"SPEC"`
	Tokens tokens   `group:"data" placeholder:"N"`
}

// tokens is a number of them, 0: none was given.
type tokens int

// UnmarshalText reads a number that a corpus may have.
func (n *tokens) UnmarshalText(text []byte) error {
	x, err := strconv.Atoi(string(text))
	if err != nil || x < 1 || x > lda.MaxTokens {
		return fmt.Errorf("%q: want a whole number from 1 to %d", text, lda.MaxTokens)
	}
	*n = tokens(x)
	return nil
}

// mostImagined is how many documents and words there may be of a corpus that nobody has.
const mostImagined = 1 << 27

// topics plans latent Dirichlet allocation by the schedule of LightLDA, of documents on a disk:
// what the worker takes that takes most.
func (c *planCmd) topics(e *env) (err error) {
	if err := c.plansTopics(e); err != nil {
		return err
	}
	run := (&trainCmd{modelFlags: c.modelFlags, ldaFlags: c.ldaFlags}).ldaRun()
	o, workers := run.options(0, 1), max(int(c.Workers), 1)
	if err := o.Check(); err != nil {
		return err
	}
	if workers > o.Parts {
		return usagef("--workers %d and --parts %d: want a part for each", workers, o.Parts)
	}
	corpus, about, err := c.corpus()
	if err != nil {
		return err
	}
	if c.Data != "" {
		defer func() { err = errors.Join(err, corpus.Close()) }()
	}
	var all []*ldaMemory
	for rank := range workers {
		m, err := memoryOf(corpus, o, lda.Use{Rank: rank, Workers: workers},
			int64(c.HostBytes), "")
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	if c.JSON {
		var lines []map[string]any
		for _, m := range all {
			lines = append(lines, m.line())
		}
		return json.NewEncoder(e.stdout).Encode(map[string]any{"model": "lda", "data": about,
			"topics": o.Topics, "workers": lines})
	}
	most := slices.MaxFunc(all, func(a, b *ldaMemory) int {
		return cmp.Compare(a.Total(), b.Total())
	})
	of := ""
	if workers > 1 {
		of = fmt.Sprintf("%d; what is said is of the one that takes most", workers)
	}
	printFields(e.stdout, append([]field{{"model", fmt.Sprintf("lda, %s",
		counted(o.Topics, "topic"))}, {"data", about}, {"workers", of}}, most.fields()...))
	return nil
}

// plansTopics refuses flags that have no meaning for a plan of topics.
func (c *planCmd) plansTopics(e *env) error {
	plan := c.planFlags
	plan.HostBytes = 0
	idle := slices.DeleteFunc(c.particular(), func(o option) bool {
		return o.name == "topics" || o.name == "vocabulary" && c.Data == "" ||
			o.name == "length" && c.Data == ""
	})
	idle = append(idle, option{"tokens", c.Tokens > 0 && c.Data != ""},
		option{"batch", c.Batch > 0}, option{"size", e.given["size"]}, option{"fine", c.Fine},
		option{"optimizer", c.Optimizer != ""}, option{"sync", c.Sync != ""},
		option{"device", c.Device != ""}, option{"dump", c.Dump != ""},
		option{"dump-pass", c.DumpPass != ""}, option{"steps", c.Steps.given},
		option{"sharding", c.Sharding}, option{"graph", c.Graph != ""}, option{"sweep", c.Sweep},
		option{"points", c.Points > 0}, option{"plot", c.Plot != ""}, option{"advise", c.Advise})
	if name := firstGiven(idle, plan.given()); name != "" {
		with := "--model lda"
		if c.Data != "" {
			with += " and --data"
		}
		return usagef("plan --%s does nothing with %s: leave one of them out", name, with)
	}
	if c.Workers > 0 && e.extras.Cluster == nil {
		return elsewhere(e, []option{{"workers", true}})
	}
	return nil
}

// corpus is the documents that are planned for, and what they are, in words.
func (c *planCmd) corpus() (_ *lda.Corpus, about string, err error) {
	if c.Data != "" {
		corpus, err := lda.Shelved("")
		if err != nil {
			return nil, "", err
		}
		if err := bagsOf(string(c.Data), corpus, nil); err != nil {
			return nil, "", errors.Join(err, corpus.Close())
		}
		return corpus, fmt.Sprintf("%s: %s tokens of %s words in %s documents", c.Data,
			grouped(int64(corpus.Tokens())), grouped(int64(corpus.Vocab)),
			grouped(int64(corpus.Docs()))), nil
	}
	vocab, length := cmp.Or(int(c.Vocabulary), 100_000), cmp.Or(int(c.Length), 100)
	docs := cmp.Or(int(c.Tokens), 100_000_000) / length
	if docs < 1 || docs > mostImagined || vocab > mostImagined {
		return nil, "", usagef("%d documents of %d words each, among %d words: want 1 to %d "+
			"documents, and as many words at most", docs, length, vocab, mostImagined)
	}
	return lda.Imagined(docs, length, lda.Zipf(docs*length, vocab)),
		fmt.Sprintf("imagined: %s documents of %s among %s, by Zipf's law", grouped(int64(docs)),
			counted(length, "word"), grouped(int64(vocab))), nil
}
