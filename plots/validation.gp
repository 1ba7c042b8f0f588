# Predictions against measurements: times of steps, and peaks of memory, allocated and reserved.

load programs.'/common.gp'
load programs.'/frame.gp'

set border 3 lc rgb line_colour lw 1
set logscale xy
set grid xtics ytics lt 1 lc rgb grid_colour lw 0.5
set format '%g'
set samples 100

wide = 0xE0E8F0
narrow = 0xB8CCE0
array left[2] = [left_1, left_2]
array right[2] = [right_1, right_2]
array top[2] = [top_1, top_2]
array bottom[2] = [bottom_1, bottom_2]

do for [panel = 1:panels] {
    memory = panel > 1 || times == 0
    least = memory ? least_memory : least_time
    most = memory ? most_memory : most_time
    set lmargin at screen across(left[panel])
    set rmargin at screen across(right[panel])
    set tmargin at screen down(top[panel])
    set bmargin at screen down(bottom[panel])
    set xrange [least:most] noextend
    set yrange [least:most] noextend
    set label 1 (memory ? 'measured peak of memory, GB' : 'measured time of a step, s') \
        at screen 0.5 * (across(left[panel]) + across(right[panel])), down(bottom[panel] + 28) \
        center textcolor rgb text_colour
    set label 2 (memory ? 'predicted, GB' : 'predicted, s') at screen across(left[panel] - 52), \
        0.5 * (down(top[panel]) + down(bottom[panel])) center rotate by 90 textcolor rgb text_colour
    points = folder.(memory ? '/memory.dat' : '/times.dat')
    plot '+' using 1:(0.9 * $1):(1.1 * $1) with filledcurves lc rgb wide, \
         '+' using 1:(0.95 * $1):(1.05 * $1) with filledcurves lc rgb narrow, \
         '+' using 1:1 with lines lc rgb line_colour lw 0.8, \
         points using 1:2:3:4 with points pt variable ps mark(0.5) lw 0.9 lc rgb variable
}
unset multiplot
set output
