// Telegraf's input nvidia_smi, unmodified, as the agent runs it: it gathers once, and each metric is printed as
// "name tag=value;field=value".
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/logger"
	"github.com/influxdata/telegraf/plugins/inputs"
	"github.com/influxdata/telegraf/plugins/inputs/nvidia_smi"
)

type printer struct{ failed bool }

func (*printer) line(name string, fields map[string]interface{}, tags map[string]string) {
	var words []string
	for key, value := range tags {
		words = append(words, fmt.Sprintf("%s=%s", key, value))
	}
	for key, value := range fields {
		words = append(words, fmt.Sprintf("%s=%v", key, value))
	}
	sort.Strings(words)
	fmt.Println(name, strings.Join(words, ";"))
}

func (p *printer) AddFields(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	p.line(name, fields, tags)
}
func (p *printer) AddGauge(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	p.line(name, fields, tags)
}
func (p *printer) AddCounter(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	p.line(name, fields, tags)
}
func (p *printer) AddSummary(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	p.line(name, fields, tags)
}
func (p *printer) AddHistogram(name string, fields map[string]interface{}, tags map[string]string, _ ...time.Time) {
	p.line(name, fields, tags)
}
func (p *printer) AddMetric(m telegraf.Metric) { p.line(m.Name(), m.Fields(), m.Tags()) }
func (*printer) SetPrecision(time.Duration)    {}
func (p *printer) AddError(err error) {
	p.failed = true
	fmt.Fprintln(os.Stderr, err)
}
func (*printer) WithTracking(int) telegraf.TrackingAccumulator { panic("nobody tracks") }

func main() {
	input := inputs.Inputs["nvidia_smi"]()
	input.(*nvidia_smi.NvidiaSMI).Log = logger.New("inputs", "nvidia_smi", "")
	found := &printer{}
	if initializer, ok := input.(telegraf.Initializer); ok {
		if err := initializer.Init(); err != nil {
			found.AddError(err)
			os.Exit(1)
		}
	}
	if service, ok := input.(telegraf.ServiceInput); ok {
		if err := service.Start(found); err != nil {
			found.AddError(err)
			os.Exit(1)
		}
	}
	if err := input.Gather(found); err != nil || found.failed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
