package command

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/arrays"
	"github.com/gomem/gomem/data/bags"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// given is data that was read before the model was built.
type given struct {
	corpus    *data.Corpus
	text      *data.Running
	set       *images.Set
	speech    *speech.Set
	bags      *bags.Set
	arrays    *arrays.Set
	tokenizer *data.Tokenizer
}

// readTexts reads pairs of texts and learns the sub-words: as many of them as there are is
// the model's vocabulary. What takes long says so.
func readTexts(ctx context.Context, w io.Writer, c *trainCmd) error {
	most, err := mostWords(c.modelFlags)
	if err != nil {
		return err
	}
	spec := c.spec()
	corpus, err := data.Options{EvalShare: float64(c.EvalShare),
		Progress: reading(w, spec)}.Open(ctx, spec)
	if err != nil {
		return asSpec(err)
	}
	tokenizer, err := c.past.words()
	if err == nil && tokenizer == nil {
		done := notice(w, fmt.Sprintf("gomem: learning up to %d sub-words from %s", most,
			counted(corpus.Info.Pairs, "pair")))
		defer done()
		tokenizer, err = data.TrainTokenizer(ctx, corpus, most)
	}
	if err != nil {
		return err
	}
	c.given = given{corpus: corpus, tokenizer: tokenizer}
	return sizeByWords(c, tokenizer, most)
}

// mostWords is how many sub-words a model of pairs has at most.
func mostWords(f modelFlags) (int, error) {
	if f.Model == "moe" {
		c, err := moeConfig(f)
		return c.Vocab, err
	}
	c, err := transformerConfig(f)
	return c.Vocab, err
}

// loadTexts makes batches of pairs of texts.
func loadTexts(_ context.Context, _ io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	corpus, tokenizer := c.given.corpus, c.given.tokenizer
	source := m.Data[0].Type()
	loader, err := data.NewLoader(corpus, tokenizer,
		data.LoaderOptions{Pairs: source.Size(0), Length: source.Size(1), Seed: c.Seed})
	return dataset{
		batches: loader, tokenizer: tokenizer, about: corpus.Info.String(), id: corpus.Info.SHA256,
		formerly: corpus.Info.Listing,
		facts:    []field{{"vocabulary", grouped(int64(tokenizer.Used())) + " sub-words"}},
		scorer:   train.TextScorer(tokenizer, translations(c.BLEU, m)),
	}, err
}

// translations is the number of held-out batches that are translated for BLEU, unless it is said.
// At full size that takes hours on a processor, so there it has to be asked for.
func translations(said *whole, m *models.Model) int {
	switch {
	case said != nil:
		return int(*said)
	case m.Size == "base":
		return 0
	}
	return 2
}
