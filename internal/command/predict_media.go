package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
)

// listed are the files that inputs stand for: a directory stands for those that list
// finds in it. What is wrong with an input is the error of a question.
func listed[T any](inputs []string, list func(dir string) ([]string, error)) []question[T] {
	var out []question[T]
	for _, input := range inputs {
		info, err := os.Stat(input)
		if input == stdinName || err != nil || !info.IsDir() {
			out = append(out, question[T]{Input: input})
			continue
		}
		paths, err := list(input)
		if err == nil && len(paths) == 0 {
			err = errors.New("nothing in the directory that could be read")
		}
		if err != nil {
			out = append(out, question[T]{Input: input, Err: data.Remedied(err)})
		}
		for _, path := range paths {
			out = append(out, question[T]{Input: path})
		}
	}
	return out
}

// inTurn gives questions some at a time, with what read makes of them.
func inTurn[T any](all []question[T], most int,
	read func(input string) (T, error)) func() []question[T] {
	return func() []question[T] {
		some := all[:min(most, len(all))]
		all = all[len(some):]
		readAll(some, read)
		return some
	}
}

// readAll sets the values of questions to what read makes of their inputs.
func readAll[T any](some []question[T], read func(input string) (T, error)) {
	for i := range some {
		if q := &some[i]; q.Err == nil {
			q.Value, q.Err = read(q.Input)
		}
	}
}

// netTask is the task of a model that answers with one execution a batch.
func netTask(p *models.Predictor, x checkpointed,
	run func(ctx context.Context, n *predict.Net, r *reply) error) *task {
	return &task{graph: p.Graph, targets: []gomem.Target{predict.NetTarget(p)}, unit: p.Unit,
		run: func(ctx context.Context, planned *gomem.Planned, o gomem.Options, r *reply) error {
			n, err := predict.OpenNet(planned, o, p, x.weights())
			if err != nil {
				return err
			}
			err = run(ctx, n, r)
			r.usage = n.Usage()
			return cmp.Or(err, n.Close())
		}}
}

// classified is the line of a picture.
type classified struct {
	Type    string       `json:"type"`
	Input   string       `json:"input"`
	Classes []classShare `json:"classes"` // the likeliest first
}

// classShare is a class and its probability.
type classShare struct {
	Class int     `json:"class"`
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// defaultTop is how many classes of a picture are shown.
const defaultTop = 5

// classification is the task of a model that says what is on pictures.
func classification(_ context.Context, e *env, c *predictCmd, x checkpointed) (*task, error) {
	if len(c.Inputs) == 0 {
		c.Inputs = []string{stdinName}
	}
	all := listed[image.Image](c.Inputs, images.List)
	f := x.flags
	f.Batch = min(c.Batch, count(max(1, len(all))))
	config, err := resNetConfig(f)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	p, err := models.ResNetPredictor(config)
	if err != nil {
		return nil, err
	}
	top := cmp.Or(int(c.Top), min(defaultTop, config.Classes))
	read := func(input string) (image.Image, error) {
		if input == stdinName {
			return pictureOf(e.stdin)
		}
		picture, err := images.Read(input)
		return picture, data.Remedied(err)
	}
	return netTask(p, x, func(ctx context.Context, n *predict.Net, r *reply) error {
		return answerAll(r, inTurn(all, int(f.Batch), read),
			func(pictures []image.Image) ([][]predict.Share, error) {
				return n.Classify(ctx, pictures, top)
			}, func(q question[image.Image], shares []predict.Share) {
				r.units++
				r.showClasses(x, q.Input, shares)
			})
	}), nil
}

// maxPicture bounds what is read of standard input, in bytes.
const maxPicture = 1 << 28

// pictureOf reads a picture from a stream.
func pictureOf(in io.Reader) (image.Image, error) {
	content, err := io.ReadAll(io.LimitReader(in, maxPicture))
	if err != nil {
		return nil, bare(err)
	}
	return images.Decode(content)
}

// showClasses prints what may be on a picture.
func (r *reply) showClasses(x checkpointed, input string, shares []predict.Share) {
	line := classified{"prediction", input, nil}
	text := at(input, 0) + "\n"
	for _, s := range shares {
		name := x.className(s.Class)
		line.Classes = append(line.Classes, classShare{s.Class, name, s.Share})
		text += fmt.Sprintf("  %5.1f%%  %s\n", 100*s.Share, onLine(name))
	}
	r.show(line, text)
}

// transcribed is the line of a recording.
type transcribed struct {
	Type    string  `json:"type"`
	Input   string  `json:"input"`
	Text    string  `json:"text"`
	Seconds float64 `json:"seconds"` // of sound
}

// transcription is the task of a model that writes down recordings. Its graph has room
// for the longest of them.
func transcription(_ context.Context, e *env, c *predictCmd, x checkpointed) (*task, error) {
	if len(c.Inputs) == 0 {
		c.Inputs = []string{stdinName}
	}
	all := listed[[]float32](c.Inputs, speech.List)
	f := x.flags
	f.Batch, f.Length = min(c.Batch, count(max(1, len(all)))), 1
	letters, err := x.letters()
	if err != nil {
		return nil, err
	}
	reader := speech.NewReader()
	readAll(all, func(input string) ([]float32, error) { return heard(reader, input, e.stdin) })
	for _, q := range all {
		f.Length = max(f.Length, count(len(q.Value)/speech.Coefficients))
	}
	config, err := deepSpeechConfig(f)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	p, err := models.DeepSpeechPredictor(config)
	if err != nil {
		return nil, err
	}
	return netTask(p, x, func(ctx context.Context, n *predict.Net, r *reply) error {
		next := func() []question[[]float32] {
			some := all[:min(int(f.Batch), len(all))]
			all = all[len(some):]
			return some
		}
		return answerAll(r, next, func(some [][]float32) ([]string, error) {
			return n.Transcribe(ctx, some, letters, int(c.Beam))
		}, func(q question[[]float32], text string) {
			r.units++
			seconds := speech.Seconds(len(q.Value) / speech.Coefficients)
			r.show(transcribed{"prediction", q.Input, text, seconds},
				fmt.Sprintf("%s: %s\n", at(q.Input, 0), text))
		})
	}), nil
}

// heard is a recording of a file or of standard input.
func heard(r *speech.Reader, input string, stdin io.Reader) ([]float32, error) {
	var features []float32
	var err error
	if input == stdinName {
		features, err = r.FeaturesOf(stdin)
	} else {
		features, err = r.Features(input)
	}
	if n := len(features) / speech.Coefficients; n > models.MaxFrames {
		return nil, fmt.Errorf("recording of %.0f seconds: want at most %.0f, cut it",
			speech.Seconds(n), speech.Seconds(models.MaxFrames))
	}
	return features, data.Remedied(err)
}

// drawn is the line of samples.
type drawn struct {
	Type    string   `json:"type"`
	Samples int      `json:"samples"`
	Seed    uint64   `json:"seed"`
	Files   []string `json:"files"`
}

// Where samples go, and how many are drawn.
const (
	defaultOut     = "samples.png"
	defaultSamples = 16
)

// drawing is the task of a model that draws.
func drawing(_ context.Context, _ *env, c *predictCmd, x checkpointed) (*task, error) {
	if err := c.noInputs(x); err != nil {
		return nil, err
	}
	config, err := wganConfig(x.flags)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	p, err := models.WGANPredictor(config)
	if err != nil {
		return nil, err
	}
	seed := number(c.Seed, x.Seed)
	samples, out := cmp.Or(int(c.Samples), defaultSamples), cmp.Or(string(c.Out), defaultOut)
	return netTask(p, x, func(ctx context.Context, n *predict.Net, r *reply) error {
		began := time.Now()
		drawing, err := n.Draw(ctx, seed, samples)
		if err != nil {
			return err
		}
		r.busy = time.Since(began)
		files, err := writeSamples(out, drawing)
		if err != nil {
			return err
		}
		r.inputs, r.units = 1, samples
		r.show(drawn{"prediction", samples, seed, files}, strings.Join(files, "\n")+"\n")
		return nil
	}), nil
}

// writeSamples writes pictures as a grid, if the name ends in .png, or else a file each
// into a directory.
func writeSamples(out string, pictures gomem.Tensor) ([]string, error) {
	n := pictures.Type.Size(0)
	if strings.EqualFold(filepath.Ext(out), ".png") {
		return []string{out}, writeFile(out, func(w io.Writer) error {
			columns := 1
			for columns*columns < n {
				columns++
			}
			return images.EncodeGrid(w, pictures, columns)
		})
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return nil, fmt.Errorf("%s: %w", out, bare(err))
	}
	var files []string
	t := pictures.Type
	each := t.Elems() / n
	for i := range n {
		path := filepath.Join(out, fmt.Sprintf("sample-%04d.png", i+1))
		one := tensor.FromF32(pictures.F32()[i*each:][:each], 1, t.Size(1), t.Size(2), t.Size(3))
		var b bytes.Buffer
		err := images.EncodeGrid(&b, one, 1)
		if err == nil {
			err = writeFile(path, func(w io.Writer) error {
				_, err := w.Write(b.Bytes())
				return err
			})
		}
		if err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}
