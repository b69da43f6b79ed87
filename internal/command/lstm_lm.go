package command

import (
	"strconv"

	"github.com/gomem/gomem/models"
)

// lstmLMConfig is the model that flags choose.
func lstmLMConfig(f modelFlags) (models.LSTMLMConfig, error) {
	c, err := models.NewLSTMLMConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.Fine {
		return c, usagef("--fine does nothing for --model lstm-lm: leave one of them out")
	}
	setCounts(countField{f.Batch, &c.Texts}, countField{f.Length, &c.Length},
		countField{f.Depth, &c.Layers})
	f.sizes(&c.Vocab, f.Vocabulary, &c.Dropout)
	c.Training = f.training()
	return c, asUsageOf(c.Validate())
}

func buildLSTMLM(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := lstmLMConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.LSTMLM(c)
	return m, map[string]string{
		"batch": strconv.Itoa(c.Texts), "length": strconv.Itoa(c.Length),
		"depth": strconv.Itoa(c.Layers),
	}, err
}
