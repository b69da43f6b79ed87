package command

import (
	"context"
	"io"
	"strconv"

	"github.com/gomem/gomem/data/bags"
	"github.com/gomem/gomem/models"
)

// topicConfig is the model that flags choose.
func topicConfig(f modelFlags) (models.TopicConfig, error) {
	c, err := models.NewTopicConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.Fine {
		return c, usagef("--fine does nothing for --model topic: leave one of them out")
	}
	setCounts(countField{f.Batch, &c.Documents}, countField{f.Vocabulary, &c.Vocab},
		countField{f.Topics, &c.Topics})
	c.Training = f.training()
	return c, asUsageOf(c.Validate())
}

func buildTopic(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := topicConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.Topic(c)
	return m, map[string]string{"batch": strconv.Itoa(c.Documents),
		"topics": strconv.Itoa(c.Topics)}, err
}

// readBags reads or prepares documents. The model has as many words as they have.
func readBags(ctx context.Context, w io.Writer, c *trainCmd) error {
	config, err := topicConfig(c.modelFlags)
	if err != nil {
		return err
	}
	set, err := bags.Open(ctx, c.spec(), bags.Options{Seed: c.Seed, Vocab: config.Vocab,
		Topics: config.Topics, EvalShare: float64(c.EvalShare)})
	if err != nil {
		return asSpec(err)
	}
	c.given = given{bags: set}
	if c.Vocabulary == 0 && set.Vocab != config.Vocab {
		return c.past.resize("vocabulary", &c.Vocabulary, set.Vocab)
	}
	return nil
}

// loadBags makes batches of documents.
func loadBags(_ context.Context, _ io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	return bagLoader(c.given.bags, c.Seed, m)
}

// bags are documents of any number, of no more words than the model's.
func (l *evalLoading) bags() (dataset, error) {
	words := l.model.Data[0].Type()
	set, err := bags.Open(l.ctx, l.spec, bags.Options{Seed: l.Seed, EvalShare: l.share,
		Vocab: words.Size(1), Topics: l.topics()})
	if err != nil {
		return dataset{}, err
	}
	if l.whole(dataset{id: set.Info.SHA256}) {
		set = set.Whole()
	}
	return bagLoader(set, l.Seed, l.model)
}

// bagLoader makes batches of a set.
func bagLoader(set *bags.Set, seed uint64, m *models.Model) (dataset, error) {
	words := m.Data[0].Type()
	loader, err := bags.NewLoader(set, bags.LoaderOptions{Documents: words.Size(0),
		Vocab: words.Size(1), Seed: seed})
	return dataset{batches: loader, about: set.Info.String(), id: set.Info.SHA256}, err
}

// topics is how many a model has.
func (l *evalLoading) topics() (n int) {
	for _, v := range l.model.Parameters() {
		n += v.Type().Size(1)
	}
	return n
}
