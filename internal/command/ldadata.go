package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/data/bags"
	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/workload"
)

// topics is latent Dirichlet allocation, by a schedule or with a table that workers share.
func (q quest) topics() (_ runner, about string, err error) {
	t := &workload.Topics{Model: q.lda.options(q.seed, q.threads), Epochs: q.rounds(50)}
	if t.Train, err = q.corpus(); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Train.Close())
		}
	}()
	if about, err = q.documents(t); err != nil {
		return nil, "", err
	}
	about = fmt.Sprintf("%s: %s tokens of %s words in %s documents", about,
		grouped(int64(t.Train.Tokens())), grouped(int64(t.Train.Vocab)),
		grouped(int64(t.Train.Docs())))
	if !q.scheduled {
		p := &workload.PLDA{Topics: *t, Slack: q.lag, Both: q.both}
		return p, about, p.Check()
	}
	return t, about, t.Check()
}

// corpus is where documents are put: in memory, unless there is a budget of it, or a disk.
func (q quest) corpus() (*lda.Corpus, error) {
	if q.disk == "" && q.host == 0 {
		return &lda.Corpus{}, nil
	}
	c, err := lda.Shelved(q.disk)
	if err != nil && q.disk != "" {
		err = fmt.Errorf("--disk %s: %w", q.disk, bare(err))
	}
	return c, err
}

// documents reads those that a task learns from and is tried on, or draws them.
func (q quest) documents(t *workload.Topics) (about string, err error) {
	if q.data != "" {
		about = q.data
		err = bagsOf(q.data, t.Train, nil)
	} else {
		about = "2000 documents of known topics, drawn"
		drawn := lda.Drawing{Docs: 2000, Length: 60, Vocab: 1000, Topics: 20, Seed: q.seed}
		if err := drawn.Fill(t.Train, 0); err != nil {
			return "", err
		}
		held := drawn
		held.Docs = 200
		t.Test, err = held.Corpus(drawn.Docs)
	}
	if err == nil && q.held != "" {
		t.Test = &lda.Corpus{}
		err = bagsOf(q.held, t.Test, t.Train)
	}
	return about, err
}

// bagsOf reads the documents of a spec, of the words of others if these are given.
func bagsOf(spec string, c, like *lda.Corpus) (err error) {
	kind, path, _ := strings.Cut(spec, ":")
	switch {
	case kind == "text" && path != "":
		err = opened("text", spec, func(r io.Reader) error { return c.ReadText(r, like) })
	case kind == "uci" && path != "":
		err = countedDocuments(spec, path, c, like)
	default:
		return usagef("--data %s: want text:FILE, a document a line, or uci:FILE or uci:DIR, "+
			"bags of words", spec)
	}
	if err == nil && c.Tokens() == 0 {
		err = fmt.Errorf("%s: no document has a word that counts", path)
	}
	return err
}

// countedDocuments reads a file of counts, or the one that a directory has, and the names of its
// words where they are beside it: vocab.x.txt beside docword.x.txt.
func countedDocuments(spec, path string, c, like *lda.Corpus) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		found, err := filepath.Glob(filepath.Join(path, "docword*.txt"))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%s: %d files docword*.txt: want one, or uci:FILE", path,
				len(found))
		}
		path = found[0]
	}
	err := bags.Counts(context.Background(), spec, path, lda.MaxTokens,
		func(vocab int, words []uint32) error {
			c.Vocab = vocab
			return c.Add(words)
		})
	if err != nil {
		return err
	}
	if like != nil && like.Vocab != c.Vocab {
		return fmt.Errorf("%s: documents of %d words, others of %d", path, c.Vocab, like.Vocab)
	}
	name := strings.TrimPrefix(filepath.Base(path), "docword")
	names := filepath.Join(filepath.Dir(path), "vocab"+name)
	if _, err := os.Stat(names); err != nil || name == filepath.Base(path) {
		return nil
	}
	return opened("uci", "uci:"+names, c.ReadNames)
}
