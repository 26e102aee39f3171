package probe

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// page is the text of one scrape in the making: Prometheus' text format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/). It is reused,
// so that scrapes leave next to no garbage.
type page struct {
	text     []byte
	families []family // made once
	family   *family  // whose samples are being written
	told     bool     // its HELP and TYPE are in the text

	snap     *Snapshot
	counters Counters
	ready    bool
	now      time.Time
}

// fill makes the page anew from what the server knows now, and tells whether
// its figures are final.
func (p *page) fill(s *Server) (done bool) {
	p.snap = s.snapshot.Load()
	if p.snap == nil {
		p.snap = new(Snapshot)
	}
	p.counters, p.ready, p.now = s.counters, Status(s.status.Load()) == Ready, time.Now()
	p.write()
	done = p.snap.Done
	p.snap = nil // a pooled page keeps no old snapshot alive
	return done
}

// write writes every family that has samples. One without is left out wholly,
// as Prometheus' own libraries do it.
func (p *page) write() {
	if p.families == nil {
		p.families = table()
	}
	p.text = p.text[:0]
	for i := range p.families {
		p.family, p.told = &p.families[i], false
		p.family.samples(p)
	}
}

// gauge writes a sample, its value without an exponent. The label values are in
// the order of the family's labels.
func (p *page) gauge(value float64, labels ...string) {
	p.series(labels)
	p.text = strconv.AppendFloat(p.text, value, 'f', -1, 64)
	p.text = append(p.text, '\n')
}

// count is gauge for what is beyond a float64's exact integers.
func (p *page) count(value uint64, labels ...string) {
	p.series(labels)
	p.text = strconv.AppendUint(p.text, value, 10)
	p.text = append(p.text, '\n')
}

// timed writes one sample for each, labelled by its name.
func (p *page) timed(all []Timed) {
	for _, t := range all {
		p.gauge(t.Seconds, t.Name)
	}
}

// series writes a sample up to its value, after the family's head if it is the first.
func (p *page) series(values []string) {
	if !p.told {
		p.told = true
		p.head()
	}
	p.text = append(p.text, p.family.Name...)
	for i, value := range values {
		if i == 0 {
			p.text = append(p.text, '{')
		} else {
			p.text = append(p.text, ',')
		}
		p.text = append(p.text, p.family.Labels[i]...)
		p.text = append(p.text, '=', '"')
		p.text = appendEscaped(p.text, value)
		p.text = append(p.text, '"')
	}
	if len(values) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ' ')
}

func (p *page) head() {
	for _, line := range [...][2]string{{"# HELP ", p.family.Help}, {"# TYPE ", p.family.Type}} {
		p.text = append(p.text, line[0]...)
		p.text = append(p.text, p.family.Name...)
		p.text = append(p.text, ' ')
		p.text = append(p.text, line[1]...)
		p.text = append(p.text, '\n')
	}
}

// appendEscaped appends a label's value: backslash, quote and newline escaped,
// what is not UTF-8 replaced by U+FFFD, since a collector refuses the whole page
// for one bad byte and a hook's file name may hold any.
func appendEscaped(text []byte, value string) []byte {
	for _, r := range value { // a bad byte comes as U+FFFD
		switch r {
		case '\\':
			text = append(text, `\\`...)
		case '"':
			text = append(text, `\"`...)
		case '\n':
			text = append(text, `\n`...)
		default:
			text = utf8.AppendRune(text, r)
		}
	}
	return text
}
