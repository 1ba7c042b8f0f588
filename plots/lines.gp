# A figure of a sweep against one key: a line, or one per value of a second key; bars where the first
# key's values are names.

load programs.'/common.gp'
load programs.'/frame.gp'

if (own_labels) {
    set xrange [0:sheet_width]
    set yrange [sheet_height:0]
    unset tics
    unset border
    if (turn > 0) {
        plot folder.'/labels.dat' using 1:2:3 with labels right rotate by turn textcolor rgb text_colour
    } else {
        plot folder.'/labels.dat' using 1:2:3 with labels center textcolor rgb text_colour
    }
    set border 1 lc rgb line_colour lw 1
    set tics nomirror out scale 0.5 textcolor rgb text_colour
    set ytics nomirror
}
set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
if (logarithmic) { set logscale x }
set xrange [x_first:x_last] noextend
set yrange [y_lowest:y_highest] noextend
set border 3 lc rgb line_colour lw 1
if (own_labels) { unset xtics } else { set xtics nomirror }
if (whole) { set ytics 1 }
set label 1 x_title at screen 0.5 * (across(area_left) + across(area_right)), down(sheet_height - 12) \
    center textcolor rgb text_colour
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
set grid ytics lt 1 lc rgb grid_colour lw 0.5
if (broken) {
    foot_across = area_left
    foot_down = area_bottom
    load programs.'/broken.gp'
}
width(i) = widest - narrower * (i - 1)
size(i) = (connected ? 0.5 : 0.5) + 0.15 * width(i)
shape(list, i) = int(word(list, i))
# what fits lies above what does not
plot folder.'/bars.dat' using 1:($6 == 0 ? $3 : NaN):1:2:3:4:5 with boxxyerror lc rgb variable, \
     for [i = 1:n_lines] folder.'/bars.dat' using 1:($6 == 1 && $7 == i ? $3 : NaN):1:2:3:4 \
         with boxxyerror lc rgb int(word(colours, i)) lw 1 fs pattern 4 border, \
     (has_capacity ? folder.'/capacity.dat' : '/dev/null') using 1:2:3:(0) with vectors nohead \
         dt (5, 4) lw 1.4 lc rgb text_colour, \
     for [i = 1:n_lines] (connected && has_dashed ? folder.'/dashed.dat' : '/dev/null') \
         index i - 1 using 1:2 with lines lc rgb int(word(colours, i)) lw 0.7 * width(i) dt (4, 4), \
     for [i = 1:n_lines] folder.'/points.dat' index i - 1 using 1:($3 == 1 ? $2 : NaN) \
         with points pt shape(full, i) ps mark(1.2 * size(i)) lc rgb 'white', \
     for [i = 1:n_lines] folder.'/points.dat' index i - 1 using 1:($3 == 1 ? $2 : NaN) \
         with points pt shape(hollow, i) ps mark(1.2 * size(i)) lw 1.4 lc rgb int(word(colours, i)), \
     for [i = 1:n_lines] (connected ? folder.'/solid.dat' : '/dev/null') index i - 1 using 1:2 \
         with lines lc rgb int(word(colours, i)) lw width(i), \
     for [i = 1:n_lines] folder.'/points.dat' index i - 1 using 1:($3 == 0 ? $2 : NaN) \
         with points pt shape(full, i) ps mark(size(i)) lc rgb int(word(colours, i)), \
     (has_foot ? folder.'/foot.dat' : '/dev/null') using 1:2:3:4 \
         with points pt variable ps mark(0.8) lw 1.4 lc rgb variable
unset multiplot
set output
