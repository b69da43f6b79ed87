package speech

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gomem/gomem/data"
)

// sentence is a line that is to be spoken.
type sentence struct {
	text string
	line int
}

// readESpeak has each line of a file spoken by eSpeak NG or eSpeak, whichever is
// installed. The utterances keep their features: a program that failed in the
// middle of a run would be too late.
func (r *reader) readESpeak(ctx context.Context, path string) error {
	sentences, err := r.readSentences(ctx, path)
	if err != nil {
		return err
	}
	program, err := findESpeak()
	if err != nil {
		return r.fail("", 0, err)
	}
	size := 8 * runtime.GOMAXPROCS(0)
	for begin := 0; begin < len(sentences); begin += size {
		group := sentences[begin:min(begin+size, len(sentences))]
		spoken, failures := make([]Utterance, len(group)), make([]error, len(group))
		inParallel(len(group), func(i int) {
			spoken[i], failures[i] = r.pronounced(ctx, program, group[i].text)
		})
		for i, s := range group {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if failures[i] != nil {
				return r.fail(path, s.line, failures[i])
			}
			r.add(spoken[i])
		}
		r.progress(begin + len(group))
	}
	return nil
}

// readSentences reads the lines of a file but for those that are blank.
func (r *reader) readSentences(ctx context.Context, path string) ([]sentence, error) {
	f, _, err := data.OpenFile(path)
	if err != nil {
		return nil, r.fail(path, 0, err)
	}
	defer f.Close()
	var sentences []sentence
	in := data.Hash(filepath.Base(path), f)
	lines := bufio.NewScanner(in)
	n := 0
	for (r.opts.MaxUtterances == 0 || len(sentences) < r.opts.MaxUtterances) && lines.Scan() {
		n++
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		if strings.TrimSpace(line) == "" {
			continue
		}
		text, err := line, data.CheckUTF8(line)
		if err == nil {
			text, err = normalise(line, true) // in the voice of an English program
		}
		if err != nil {
			return nil, r.fail(path, n, err)
		}
		sentences = append(sentences, sentence{text, n})
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, r.fail(path, n+1, fmt.Errorf("line of more than %d bytes: write a sentence a "+
			"line", bufio.MaxScanTokenSize))
	} else if err != nil {
		return nil, r.fail(path, n+1, data.Remedied(err))
	}
	file, err := in.File()
	if err != nil {
		return nil, r.fail(path, 0, data.Remedied(err))
	}
	r.addFile(file)
	return sentences, nil
}

func findESpeak() (string, error) {
	for _, name := range []string{"espeak-ng", "espeak"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("neither espeak-ng nor espeak is on the PATH (%w): install one, or use "+
		"formant", exec.ErrNotFound)
}

// pronounced is a text that program has spoken, in a voice of the text's own.
func (r *reader) pronounced(ctx context.Context, program, text string) (Utterance, error) {
	v := voiceOf(text, r.opts.Seed)
	var complaint bytes.Buffer
	words := strconv.Itoa(int(130 * v.speed)) // a minute
	pitch := strconv.Itoa(int(v.pitch / 3))   // from 0 to 99
	cmd := exec.CommandContext(ctx, program, "--stdout", "-s", words, "-p", pitch, text)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return Utterance{}, fmt.Errorf("%.200q did not speak (%w) %.200q: try it by hand", program,
			err, first)
	}
	samples, rate, err := readSamples(bytes.NewReader(out))
	if err != nil {
		return Utterance{}, fmt.Errorf("%.200q: %w", program, err)
	}
	features := r.analyser.features(r.analyser.run(samples, rate))
	return Utterance{Text: text, Frames: len(features) / Coefficients, features: features}, nil
}
