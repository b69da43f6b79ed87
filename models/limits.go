package models

import "fmt"

// The most that a graph is built for. Beyond the first two, building would take
// minutes; beyond the others, the bytes of a step could be more than a number
// holds, and are certainly more than any machine does.
const (
	maxLayers  = 1 << 10
	maxExperts = 1 << 14
	maxHidden  = 1 << 20 // units
	maxBatch   = 1 << 20 // texts, images or utterances
	maxLength  = 1 << 16 // tokens of a text
	maxLong    = 1 << 20 // of one that only ops.Attention reads
	maxTokens  = 1 << 26 // of a batch
	maxSide    = 1 << 14 // pixels
	maxPixels  = 1 << 36 // of a batch, without channels
)

// texts limits a batch of texts.
func texts(batch, length int) error { return longTexts(batch, length, maxLength) }

// longTexts limits a batch of texts, and how long they are.
func longTexts(batch, length, longest int) error {
	return within(
		limit{"--batch", batch, 1, maxBatch},
		limit{"--length", length, 2, longest},
		limit{"--batch times --length", batch * length, 1, maxTokens},
	)
}

// images limits a batch of images, whose sides have at least some pixels.
func images(batch, side, least int) error {
	return within(
		limit{"--batch", batch, 1, maxBatch},
		limit{"--pixels", side, least, maxSide},
		limit{"--batch times --pixels squared", batch * side * side, 1, maxPixels},
	)
}

// limit is what a number may be; option is what users know it by.
type limit struct {
	option             string
	value, least, most int
}

// within reports the first number outside its limits.
func within(limits ...limit) error {
	for _, l := range limits {
		switch {
		case l.value < l.least:
			return fmt.Errorf("%s is %d: want %d or more", l.option, l.value, l.least)
		case l.value > l.most:
			return fmt.Errorf("%s is %d: want %d or less", l.option, l.value, l.most)
		}
	}
	return nil
}

// share is a number that must be from 0 up to, but not including, 1.
type share struct {
	option string
	value  float32
}

// fractions reports the first share that is none.
func fractions(shares ...share) error {
	for _, s := range shares {
		if !(s.value >= 0 && s.value < 1) {
			return fmt.Errorf("%s is %v: want a number from 0 to 1", s.option, s.value)
		}
	}
	return nil
}

func unknownSize(size string) error {
	return fmt.Errorf("unknown size %.60q: want s512, s64 or base", size)
}
