package speech

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/data"
)

// The columns of Mozilla's CSV files.
var columns = [...]string{"wav_filename", "wav_filesize", "transcript"}

// row is a line of a CSV file, which is right so far.
type row struct {
	line      int
	wav, text string
}

// readCSV lists the utterances of a CSV file, and reads their WAV files. All lines that are
// wrong are told at once.
func (r *reader) readCSV(ctx context.Context, path string) error {
	rows, faults, err := r.readRows(path)
	if err != nil {
		return err
	}
	err = data.InOrder(ctx, len(rows), func(i int) (recording, error) {
		return listen(rows[i].wav), nil
	}, func(i int, heard recording) bool {
		if heard.err != nil {
			faults = append(faults, fault{rows[i].line, heard.err})
			return true
		}
		r.addFile(heard.file)
		r.add(Utterance{Text: rows[i].text, Path: rows[i].wav, Frames: heard.frames,
			sum: heard.file.Sum})
		return true
	})
	if err != nil {
		return err
	}
	return r.failAll(path, faults)
}

// readRows reads a CSV file up to the rows that may be kept. A row that is wrong does not
// count among these.
func (r *reader) readRows(path string) (rows []row, faults []fault, err error) {
	f, _, err := data.OpenFile(path)
	if err != nil {
		return nil, nil, r.fail(path, 0, err)
	}
	defer f.Close()
	file := data.Hash(filepath.Base(path), f)
	in := csv.NewReader(file)
	in.ReuseRecord = true
	order, err := readColumns(in)
	if err != nil {
		return nil, nil, r.fail(path, 1, err)
	}
	for r.opts.MaxUtterances == 0 || len(rows) < r.opts.MaxUtterances {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if bad, ok := errors.AsType[*csv.ParseError](err); ok {
			faults = append(faults, fault{bad.Line, fmt.Errorf("%w: correct the CSV", bad.Err)})
			continue // with the next line
		}
		if err != nil {
			return nil, nil, r.fail(path, 0, data.Remedied(err))
		}
		line, _ := in.FieldPos(0)
		next, err := r.parseRow(path, fields[order[0]], fields[order[1]], fields[order[2]])
		if next.line = line; err != nil {
			faults = append(faults, fault{line, err})
			continue
		}
		rows = append(rows, next)
	}
	whole, err := file.File()
	if err != nil {
		return nil, nil, r.fail(path, 0, data.Remedied(err))
	}
	r.addFile(whole)
	return rows, faults, nil
}

// readColumns finds the columns by the names in the first row.
func readColumns(rows *csv.Reader) (order [len(columns)]int, err error) {
	names, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return order, fmt.Errorf("not a CSV file: give one that begins with %s",
			strings.Join(columns[:], ","))
	}
	if err := data.CheckUTF8(strings.Join(names, ",")); err != nil {
		return order, err
	}
	at := map[string]int{}
	for i, name := range names {
		at[strings.TrimPrefix(name, "\ufeff")] = i
	}
	for i, name := range columns {
		place, ok := at[name]
		if !ok {
			return order, fmt.Errorf("no column %s: begin with %s", name,
				strings.Join(columns[:], ","))
		}
		order[i] = place
	}
	return order, nil
}

// parseRow is a row of the CSV file at path.
func (r *reader) parseRow(path, wav, size, transcript string) (row, error) {
	if err := data.CheckUTF8(transcript); err != nil {
		return row{}, err
	}
	text, err := normalise(transcript, false)
	if err == nil {
		err = r.known(text)
	}
	if err != nil {
		return row{}, err
	}
	if n, err := strconv.ParseInt(size, 10, 64); err != nil || n < 0 {
		return row{}, fmt.Errorf("wav_filesize is %.40q: give the number of bytes", size)
	}
	if wav == "" {
		return row{}, errors.New("no wav_filename: give the path of a WAV file")
	}
	if !filepath.IsAbs(wav) {
		wav = filepath.Join(filepath.Dir(path), wav)
	}
	return row{wav: wav, text: text}, nil
}

// known refuses letters that are not the model's, where they are given.
func (r *reader) known(text string) error {
	for _, letter := range text {
		if r.opts.Letters == nil {
			r.found[letter] = true
		} else if !slices.Contains(r.opts.Letters, letter) {
			return fmt.Errorf("transcript with %q, which the model does not know: it writes %q",
				letter, string(r.opts.Letters))
		}
	}
	return nil
}

// recording is what is known of a WAV file.
type recording struct {
	file   data.File
	frames int
	err    error
}

// listen reads a WAV file.
func listen(path string) recording {
	samples, rate, file, err := readWAV(path)
	if err != nil {
		return recording{err: fmt.Errorf("%.200q: %w", path, err)}
	}
	n := resampled(int64(len(samples)), Rate, rate)
	return recording{file: file, frames: Frames(int(n))}
}

// readWAV reads the samples of a WAV file, at its rate.
func readWAV(path string) (samples []float32, rate int, file data.File, err error) {
	f, _, err := data.OpenFile(path)
	if err != nil {
		return nil, 0, file, err
	}
	defer f.Close()
	in := data.Hash(filepath.Base(path), f)
	if samples, rate, err = readSamples(in); err != nil {
		return nil, 0, file, data.Remedied(err)
	}
	file, err = in.File()
	return samples, rate, file, err
}

// fault is what is wrong with a line.
type fault struct {
	line int
	err  error
}

// maxFaults is how many lines are named of those that are wrong.
const maxFaults = 10

// failAll is the error of all lines that are wrong, of a file; nil if none is.
func (r *reader) failAll(path string, faults []fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return a.line - b.line })
	first := faults[0]
	if len(faults) == 1 {
		return r.fail(path, first.line, first.err)
	}
	text := fmt.Sprintf("%d lines are wrong", len(faults))
	for _, f := range faults[:min(len(faults), maxFaults)] {
		text += fmt.Sprintf("; line %d: %v", f.line, f.err)
	}
	if more := len(faults) - maxFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return r.fail(path, first.line, &several{text, faults})
}

// several are what is wrong with several lines.
type several struct {
	text   string
	faults []fault
}

// Error names the first of them.
func (s *several) Error() string { return s.text }

// Unwrap are all causes.
func (s *several) Unwrap() []error {
	causes := make([]error, len(s.faults))
	for i, f := range s.faults {
		causes[i] = f.err
	}
	return causes
}
