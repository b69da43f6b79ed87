package speech

import "strings"

// phone is a steady sound. The formants of vowels are those that Peterson and
// Barney (1952) measured of men.
type phone struct {
	milliseconds float64
	formants     [3]float64 // Hz; zero keeps those of the phone before
	voice        float64    // amplitude of the pulses of the glottis
	noise        float64    // amplitude of the noise of a narrow place
	centre, band float64    // of that noise, Hz
}

// vowel is a phone of voice alone.
func vowel(ms, f1, f2, f3 float64) phone {
	return phone{milliseconds: ms, formants: [3]float64{f1, f2, f3}, voice: 1}
}

// sonorant is a voiced consonant without noise.
func sonorant(f1, f2, f3 float64) phone {
	return phone{milliseconds: 70, formants: [3]float64{f1, f2, f3}, voice: 0.5}
}

// fricative is a phone of noise, and of voice unless that is zero.
func fricative(ms, voice, noise, centre, band float64) phone {
	return phone{milliseconds: ms, voice: voice, noise: noise, centre: centre, band: band}
}

// phones has the phone of every character that [pronounce] writes; others are a
// silence between words. Stops are two: a closure, "." or voiced ",", and a burst.
// Diphthongs are two vowels.
var phones = map[byte]phone{
	'i': vowel(90, 270, 2290, 3010),  // beat
	'I': vowel(70, 390, 1990, 2550),  // bit
	'E': vowel(80, 530, 1840, 2480),  // bet
	'a': vowel(100, 660, 1720, 2410), // bat
	'V': vowel(80, 640, 1190, 2390),  // but
	'A': vowel(100, 730, 1090, 2440), // father
	'O': vowel(100, 570, 840, 2410),  // bought
	'U': vowel(80, 440, 1020, 2240),  // book
	'u': vowel(90, 300, 870, 2240),   // boot
	'm': sonorant(250, 1000, 2200),
	'n': sonorant(250, 1700, 2600),
	'N': sonorant(250, 2200, 2800), // sing
	'l': sonorant(360, 1000, 2800),
	'r': sonorant(420, 1300, 1600),
	'w': sonorant(300, 610, 2200),
	'y': sonorant(270, 2300, 3100),
	's': fricative(90, 0, 0.25, 6000, 1500),
	'z': fricative(80, 0.4, 0.15, 6000, 1500),
	'S': fricative(90, 0, 0.25, 2800, 900),   // ship
	'Z': fricative(70, 0.4, 0.15, 2800, 900), // genre
	'f': fricative(80, 0, 0.1, 4500, 4000),
	'v': fricative(60, 0.5, 0.06, 4500, 4000),
	'T': fricative(80, 0, 0.08, 7000, 2000),   // thin
	'D': fricative(50, 0.5, 0.05, 7000, 2000), // this
	'h': fricative(60, 0, 0.12, 1500, 1200),
	'p': fricative(20, 0, 0.25, 700, 800),
	'b': fricative(20, 0, 0.25, 700, 800),
	't': fricative(20, 0, 0.25, 4500, 1500),
	'd': fricative(20, 0, 0.25, 4500, 1500),
	'k': fricative(25, 0, 0.25, 1900, 800),
	'g': fricative(25, 0, 0.25, 1900, 800),
	',': {milliseconds: 45, voice: 0.15},
	'.': {milliseconds: 50},
}

// rule says how letters sound.
type rule struct{ letters, phones string }

// rules has the rules for the letters that begin with one, the longest first, so
// that the first that fits is the one to take.
var rules = map[byte][]rule{
	'a': {{"augh", "O"}, {"ai", "EI"}, {"ay", "EI"}, {"au", "O"}, {"aw", "O"}, {"ar", "Ar"},
		{"a", "a"}},
	'b': {{"bb", ",b"}, {"b", ",b"}},
	'c': {{"ch", ".tS"}, {"ck", ".k"}, {"ce", "sE"}, {"ci", "sI"}, {"cy", "si"}, {"cc", ".k"},
		{"c", ".k"}},
	'd': {{"dd", ",d"}, {"d", ",d"}},
	'e': {{"ee", "i"}, {"ea", "i"}, {"er", "Vr"}, {"ey", "i"}, {"ew", "yu"}, {"e", "E"}},
	'f': {{"ff", "f"}, {"f", "f"}},
	'g': {{"gh", ",g"}, {"ge", ",dZE"}, {"gi", ",dZI"}, {"gg", ",g"}, {"g", ",g"}},
	'h': {{"h", "h"}},
	'i': {{"igh", "AI"}, {"ie", "i"}, {"ir", "Vr"}, {"i", "I"}},
	'j': {{"j", ",dZ"}},
	'k': {{"kn", "n"}, {"k", ".k"}},
	'l': {{"ll", "l"}, {"l", "l"}},
	'm': {{"mm", "m"}, {"m", "m"}},
	'n': {{"ng", "N"}, {"nn", "n"}, {"n", "n"}},
	'o': {{"oo", "u"}, {"ou", "AU"}, {"ow", "OU"}, {"oi", "OI"}, {"oy", "OI"}, {"oa", "OU"},
		{"or", "Or"}, {"o", "A"}},
	'p': {{"ph", "f"}, {"pp", ".p"}, {"p", ".p"}},
	'q': {{"qu", ".kw"}, {"q", ".k"}},
	'r': {{"rr", "r"}, {"r", "r"}},
	's': {{"sion", "ZVn"}, {"sh", "S"}, {"ss", "s"}, {"s", "s"}},
	't': {{"tion", "SVn"}, {"tch", ".tS"}, {"th", "T"}, {"tt", ".t"}, {"t", ".t"}},
	'u': {{"ur", "Vr"}, {"u", "V"}},
	'v': {{"v", "v"}},
	'w': {{"wh", "w"}, {"wr", "r"}, {"w", "w"}},
	'x': {{"x", ".ks"}},
	'y': {{"y", "y"}},
	'z': {{"zz", "z"}, {"z", "z"}},
}

// pronounce writes a normalised text as phones, a character each, with a space
// between words.
func pronounce(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "'", ""))
	for i, w := range words {
		words[i] = pronounceWord(w)
	}
	return strings.Join(words, " ")
}

// pronounceWord takes the first rule that fits at each place of a word, but for the
// ends of words: a final e after a consonant is silent if there is another vowel, a
// final y sounds as in "any", and "the" and words like it have a voiced th.
func pronounceWord(word string) string {
	switch word {
	case "a":
		return "V"
	case "the":
		return "DV"
	case "of":
		return "Vv"
	case "this", "that", "then", "than", "these", "those", "there":
		return "D" + pronounceWord(word[2:])
	}
	stem, ending := word, ""
	switch last := len(word) - 1; {
	case last > 1 && word[last] == 'e' && !isVowel(word[last-1]) &&
		strings.ContainsAny(word[:last], vowels):
		stem, ending = silentE(word[:last])
	case last > 0 && word[last] == 'y' && !isVowel(word[last-1]):
		stem, ending = word[:last], "i"
	}
	var phones strings.Builder
	for stem != "" {
		n := 1
		for _, r := range rules[stem[0]] {
			if strings.HasPrefix(stem, r.letters) {
				phones.WriteString(r.phones)
				n = len(r.letters)
				break
			}
		}
		stem = stem[n:]
	}
	return phones.String() + ending
}

// silentE splits the consonant off a word that has lost its final e, which makes
// it soft: as in "page" and "once".
func silentE(word string) (stem, ending string) {
	stem = word[:len(word)-1]
	switch word[len(word)-1] {
	case 'c':
		return stem, "s"
	case 'g':
		return stem, ",dZ"
	}
	return word, ""
}

const vowels = "aeiouy"

func isVowel(letter byte) bool { return strings.IndexByte(vowels, letter) >= 0 }
