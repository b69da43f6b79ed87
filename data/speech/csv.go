package speech

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gomem/gomem/data"
)

// The columns of Mozilla's CSV files.
var columns = [...]string{"wav_filename", "wav_filesize", "transcript"}

// readCSV lists the utterances of a CSV file, and reads the headers of their WAV
// files.
func (r *reader) readCSV(ctx context.Context, path string) error {
	f, size, err := r.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rows := csv.NewReader(f)
	rows.ReuseRecord = true
	order, err := readColumns(rows)
	if err != nil {
		return r.fail(path, 1, err)
	}
	r.addFile(path, size)
	for !r.full() {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return r.failCSV(path, err)
		}
		line, _ := rows.FieldPos(0)
		if err := r.addRow(path, row[order[0]], row[order[1]], row[order[2]]); err != nil {
			return r.fail(path, line, err)
		}
	}
	return nil
}

// failCSV says on which line a CSV file is none.
func (r *reader) failCSV(path string, err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return r.fail(path, bad.Line, fmt.Errorf("%w: correct the CSV", bad.Err))
	}
	return r.fail(path, 0, data.Remedied(err))
}

// readColumns finds the columns by the names in the first row.
func readColumns(rows *csv.Reader) (order [len(columns)]int, err error) {
	names, err := rows.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return order, fmt.Errorf("not a CSV file: give one that begins with %s",
			strings.Join(columns[:], ","))
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

// addRow adds the utterance of a row of the CSV file at path.
func (r *reader) addRow(path, wav, size, transcript string) error {
	text, err := normalise(transcript)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseInt(size, 10, 64); err != nil || n < 0 {
		return fmt.Errorf("wav_filesize is %.40q: give the number of bytes", size)
	}
	if wav == "" {
		return errors.New("no wav_filename: give the path of a WAV file")
	}
	if !filepath.IsAbs(wav) {
		wav = filepath.Join(filepath.Dir(path), wav)
	}
	samples, bytes, err := wavSize(wav)
	if err != nil {
		return fmt.Errorf("%.200q: %w", wav, err)
	}
	r.addFile(wav, bytes)
	r.add(Utterance{Text: text, Path: wav, Frames: Frames(int(samples))})
	return nil
}

// wavSize gives the number of samples that a WAV file has at Rate, and its size.
func wavSize(path string) (samples, bytes int64, err error) {
	f, bytes, err := data.OpenFile(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	form, err := readFormat(f, false)
	if err != nil {
		return 0, 0, err
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err == nil && 2*form.samples > bytes-at {
		err = fmt.Errorf("WAV file with %d of its %d samples: copy it again", (bytes-at)/2,
			form.samples)
	}
	return resampled(form.samples, Rate, form.rate), bytes, err
}

// readWAV reads the samples of a WAV file, at its rate.
func readWAV(path string) (samples []float32, rate int, err error) {
	f, _, err := data.OpenFile(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	form, err := readFormat(f, false)
	if err != nil {
		return nil, 0, err
	}
	if samples, err = readSamples(f, form.samples); err != nil {
		return nil, 0, data.Remedied(err)
	}
	return samples, form.rate, nil
}
