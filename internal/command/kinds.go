package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// kind is a model that --model names, with the data that it learns from.
type kind struct {
	name  string
	flags []string // flags of some models that this one takes
	data  []string // what --data may begin with
	build func(modelFlags) (m *models.Model, numbers map[string]string, err error)
	// read reads data that says how large the model is, before it is built; nil: none does
	read func(ctx context.Context, w io.Writer, c *trainCmd) error
	// words is how many sub-words are learnt of what is read, at most; nil: there are none
	words func(modelFlags) (int, error)
	load  func(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error)
}

// dataset is what a run learns from.
type dataset struct {
	batches   data.Batches
	about     string          // what was read, on one line
	facts     []field         // more to show
	id        string          // tells data apart
	formerly  string          // its id in checkpoints that were made before contents told
	tokenizer *data.Tokenizer // nil where there is none
	classes   []string        // names of the labels from 1 on, where there are some
	scorer    func(step int, last bool) train.Scorer
}

// kinds are the models.
var kinds = []kind{
	{name: "moe", flags: []string{"length", "depth", "experts", "expert-hidden", "moe", "stacked",
		"bleu", "vocabulary", "dropout",
		"accumulate"}, data: texts, build: buildMoE, read: readTexts, words: mostWords,
		load: loadTexts},
	{name: "transformer", flags: []string{"length", "depth", "bleu", "vocabulary", "dropout",
		"accumulate"},
		data: texts, build: buildTransformer, read: readTexts, words: mostWords, load: loadTexts},
	{name: "gpt", flags: []string{"length", "depth", "blocks", "network", "tokenizer",
		"store", "vocabulary", "dropout", "accumulate", "lora"},
		data: append(slices.Clone(running), "jsonl"), build: buildGPT,
		read: readRunning, words: runningWords, load: loadRunning},
	{name: "lstm-lm", flags: []string{"length", "depth", "tokenizer", "vocabulary", "dropout",
		"accumulate"}, data: running, build: buildLSTMLM, read: readRunning, words: runningWords,
		load: loadRunning},
	{name: "topic", flags: []string{"vocabulary", "topics", "accumulate"}, data: bagged,
		build: buildTopic, read: readBags, load: loadBags},
	{name: networks, flags: []string{"axis", "output", "loss", "target", "accumulate"},
		data: named, build: buildNetwork, read: readArrays, load: loadArrays},
	{name: "resnet", flags: []string{"depth", "blocks", "version", "pixels", "classes",
		"accumulate", "strict"},
		data: pictures, build: buildResNet, read: readPhotos, load: loadPhotos},
	{name: "wgan", flags: []string{"nets", "pixels", "samples", "strict"}, data: pictures,
		build: buildWGAN, load: loadPictures},
	{name: "deepspeech", flags: []string{"length", "rnn", "dropout", "accumulate"}, data: sounds,
		build: buildDeepSpeech, read: readSpeech, load: loadSpeech},
}

// The kinds of data, by what --data begins with.
var (
	texts    = []string{"go", "tsv", "mo", "text"}
	running  = []string{"go", "text"}
	bagged   = []string{"drawn", "uci"}
	pictures = []string{"glyphs", "dir", "cifar10", "icons"}
	sounds   = []string{"formant", "csv", "espeak"}
	named    = []string{"npz", "tensors"}
)

// kindOf is the model of a name.
func kindOf(name string) (kind, error) {
	var names []string
	for _, k := range kinds {
		switch {
		case k.name == kindName(name):
			return k, nil
		case k.name == networks:
			names = append(names, networks+":FILE")
		default:
			names = append(names, k.name)
		}
	}
	return kind{}, usagef("unknown --model %q: want %s", name, either(names))
}

// either lists names to choose from.
func either(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// option is a flag of some models, and whether it is in use.
type option struct {
	name  string
	given bool
}

// takes refuses flags that a model has no use for.
func (k kind) takes(options ...option) error {
	for _, o := range options {
		if o.given && !slices.Contains(k.flags, o.name) {
			return usagef("--%s does nothing for --model %s: leave one of them out", o.name, k.name)
		}
	}
	return nil
}

// learnsFrom refuses data of other models. What is no data at all is refused by
// who reads it.
func (k kind) learnsFrom(spec string) error {
	source, _, _ := strings.Cut(spec, ":")
	if slices.Contains(k.data, source) {
		return nil
	}
	var others []string
	for _, other := range kinds {
		if slices.Contains(other.data, source) {
			others = append(others, other.name)
		}
	}
	if others == nil {
		return nil
	}
	return usagef("--data %s is not for --model %s: give it to --model %s", spec, k.name,
		either(others))
}

// moeConfig is the model that flags choose.
func moeConfig(f modelFlags) (models.MoEConfig, error) {
	c, err := models.NewMoEConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	setCounts(countField{f.Experts, &c.Experts}, countField{f.ExpertHidden, &c.ExpertHidden},
		countField{f.Batch, &c.Pairs}, countField{f.Length, &c.Length},
		countField{f.Depth, &c.Layers})
	f.sizes(&c.Vocab, f.Vocabulary, &c.Dropout)
	c.Training = f.training()
	c.Sparse, c.Stacked, c.Fine = f.MoE == "sparse", f.Stacked, f.Fine
	return c, asUsageOf(c.Validate())
}

// asUsageOf makes what is wrong with a configuration a usage error.
func asUsageOf(err error) error {
	if err != nil {
		return usagef("%w", err)
	}
	return nil
}

func buildMoE(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := moeConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.MoE(c)
	form := "dense"
	if c.Sparse {
		form = "sparse"
	}
	return m, map[string]string{
		"experts": strconv.Itoa(c.Experts), "expert-hidden": strconv.Itoa(c.ExpertHidden),
		"moe": form, "stacked": strconv.FormatBool(c.Stacked),
		"batch": strconv.Itoa(c.Pairs), "length": strconv.Itoa(c.Length),
		"depth": layersGiven(f),
	}, err
}

// layersGiven is the depth of a Transformer that has not its size's. Checkpoints say
// nothing of the others, since there were some before depths could be given.
func layersGiven(f modelFlags) string {
	c, err := models.NewTransformerConfig(f.Size)
	if err != nil || f.Depth == 0 || int(f.Depth) == c.Layers {
		return ""
	}
	return strconv.Itoa(int(f.Depth))
}

func transformerConfig(f modelFlags) (models.TransformerConfig, error) {
	c, err := models.NewTransformerConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	setCounts(countField{f.Batch, &c.Pairs}, countField{f.Length, &c.Length},
		countField{f.Depth, &c.Layers})
	f.sizes(&c.Vocab, f.Vocabulary, &c.Dropout)
	c.Fine, c.Training = f.Fine, f.training()
	return c, asUsageOf(c.Validate())
}

func buildTransformer(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := transformerConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.Transformer(c)
	return m, map[string]string{
		"batch": strconv.Itoa(c.Pairs), "length": strconv.Itoa(c.Length),
		"depth": layersGiven(f),
	}, err
}

func resNetConfig(f modelFlags) (models.ResNetConfig, error) {
	c, err := models.NewResNetConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	if f.Depth > 0 && f.Blocks != "" {
		return c, usagef("--depth and --blocks can't be used together")
	}
	if c.Blocks, err = parseBlocks(f.Blocks); err != nil {
		return c, err
	}
	setCounts(countField{f.Depth, &c.Depth}, countField{f.Batch, &c.Images},
		countField{f.Pixels, &c.Pixels}, countField{f.Classes, &c.Classes})
	c.Fine, c.Training = f.Fine, f.training()
	if f.Version == "v2" {
		c.Version = 2
	}
	return c, asUsageOf(c.Validate())
}

func buildResNet(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := resNetConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.ResNet(c)
	return m, map[string]string{
		"depth": strconv.Itoa(c.Depth), "blocks": fmt.Sprint(c.Blocks),
		"version": strconv.Itoa(c.Version),
		"batch":   strconv.Itoa(c.Images), "pixels": strconv.Itoa(c.Pixels),
	}, err
}

// parseBlocks reads four numbers with commas; nothing gives zeros.
func parseBlocks(text string) (blocks [4]int, err error) {
	if text == "" {
		return blocks, nil
	}
	parts := strings.Split(text, ",")
	for i := range blocks {
		var n int
		if len(parts) == len(blocks) {
			n, err = strconv.Atoi(strings.TrimSpace(parts[i]))
		}
		if err != nil || n < 1 || len(parts) != len(blocks) {
			return blocks, usagef("--blocks %q: want four numbers from 1, such as 3,8,36,3", text)
		}
		blocks[i] = n
	}
	return blocks, nil
}

func wganConfig(f modelFlags) (models.WGANConfig, error) {
	c, err := models.NewWGANConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	setCounts(countField{f.Batch, &c.Images}, countField{f.Pixels, &c.Pixels})
	c.Fine, c.Training = f.Fine, f.training()
	if f.Nets != "" {
		c.Nets = f.Nets
	}
	return c, asUsageOf(c.Validate())
}

func buildWGAN(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := wganConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.WGAN(c)
	return m, map[string]string{
		"nets": c.Nets, "batch": strconv.Itoa(c.Images), "pixels": strconv.Itoa(c.Pixels),
	}, err
}

func deepSpeechConfig(f modelFlags) (models.DeepSpeechConfig, error) {
	c, err := models.NewDeepSpeechConfig(f.Size)
	if err != nil {
		return c, usagef("%w", err)
	}
	setCounts(countField{f.Batch, &c.Utterances}, countField{f.Length, &c.Frames})
	f.sizes(&c.Symbols, f.symbols, &c.Dropout)
	c.Unrolled, c.Scanned = f.RNN == "unrolled", f.RNN == "scanned"
	c.Fine, c.Training = f.Fine, f.training()
	return c, asUsageOf(c.Validate())
}

func buildDeepSpeech(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := deepSpeechConfig(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := models.DeepSpeech(c)
	return m, map[string]string{
		"unrolled": strconv.FormatBool(c.Unrolled), "scanned": strconv.FormatBool(c.Scanned),
		"batch": strconv.Itoa(c.Utterances), "length": strconv.Itoa(c.Frames),
	}, err
}
